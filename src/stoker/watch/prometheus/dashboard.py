"""Grafana's dashboard, from `data/dashboard.toml`. Pure."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from stoker.records.base import Record

DATA = Path(__file__).parent.parent / "data" / "dashboard.toml"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH, HEIGHT, IN_A_ROW = 6, 7, 4
SCHEMA = 39  # Grafana 10's; newer ones take it over


class Panel(Record, frozen=True):
    """A graph: its expressions, and the labels that its legend names."""

    title: str
    unit: str
    legend: str
    exprs: tuple[str, ...]


class Row(Record, frozen=True):
    """Panels side by side."""

    title: str
    panel: tuple[Panel, ...]


def load_rows() -> tuple[Row, ...]:
    """Returns what the dashboard shows."""
    return msgspec.convert(tomllib.loads(DATA.read_text(encoding="utf-8"))["row"], tuple[Row, ...])


def render_dashboard() -> str:
    """Returns the dashboard as Grafana imports it."""
    panels, at = [], 0
    for row in load_rows():
        panels.append({"type": "row", "title": row.title, "gridPos": {"x": 0, "y": at, "w": 24, "h": 1}, "panels": []})
        for index, one in enumerate(row.panel):
            x, y = index % IN_A_ROW * WIDTH, at + 1 + index // IN_A_ROW * HEIGHT
            panels.append(_panel(one, {"x": x, "y": y, "w": WIDTH, "h": HEIGHT}))
        at += 1 + -(-len(row.panel) // IN_A_ROW) * HEIGHT
    numbered = [{"id": index, **one} for index, one in enumerate(panels, start=1)]
    tree = {
        "uid": "stoker", "title": "Stoker", "tags": ["stoker", "llm"], "schemaVersion": SCHEMA, "editable": True,
        "time": {"from": "now-6h", "to": "now"}, "refresh": "30s",
        "templating": {"list": [_source(), _services()]}, "panels": numbered,
    }  # fmt: skip
    return json.dumps(tree, indent=1) + "\n"


def _panel(panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    legend = re.sub(r"\{(\w+)\}", r"{{\1}}", panel.legend)
    targets = [
        {"refId": chr(ord("A") + index), "datasource": SOURCE, "expr": expr, "legendFormat": legend}
        for index, expr in enumerate(panel.exprs)
    ]
    return {
        "type": "timeseries", "title": panel.title, "datasource": SOURCE, "gridPos": place, "targets": targets,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
    }  # fmt: skip


def _source() -> dict[str, Any]:
    return {"name": "datasource", "type": "datasource", "query": "prometheus"}


def _services() -> dict[str, Any]:
    return {
        "name": "service", "type": "query", "datasource": SOURCE, "query": "label_values(stoker_service_state, service)",
        "refresh": 2, "includeAll": True, "multi": True, "allValue": ".*", "current": {"text": "All", "value": "$__all"},
    }  # fmt: skip
