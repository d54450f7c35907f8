"""The verdicts that were seen of real engines."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

VERDICTS = Path(__file__).parent.parent / "docs" / "verdicts.toml"


def seen(engine: str) -> dict[str, str]:
    """Returns the verdict of each probe."""
    table: dict[str, str] = tomllib.loads(VERDICTS.read_text())[engine]
    return {name: verdict for name, verdict in table.items() if name != "title"}


def verdicts_of(view: dict[str, Any]) -> dict[str, str]:
    """Returns the verdict of each probe of a report."""
    return {probe["name"]: probe["verdict"] for probe in view["probes"]}


def checks_of(view: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns the checks of a report by 'probe: check'."""
    return {f"{probe['name']}: {check['name']}": check for probe in view["probes"] for check in probe["checks"]}


def unwell(view: dict[str, Any]) -> dict[str, str]:
    """Returns what a report finds not well, for the message of a test that fails."""
    return {name: one["says"] for name, one in checks_of(view).items() if one["verdict"] != "pass"}
