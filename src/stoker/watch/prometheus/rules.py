"""Prometheus's rules, from the table of alerts. Pure."""

from __future__ import annotations

import re
from typing import Any

from stoker.records.alerting import AlertRule, AlertTable
from stoker.watch.alerts import expression_of
from stoker.watch.prometheus.durations import say_duration, scale_durations
from stoker.watch.prometheus.text import render_yaml

EVERY_S, LEAST_S = 15.0, 1.0  # the daemon looks at its engines once a second at most
LABEL = re.compile(r"\{(service|gpu|holds|box|alert)\}")


def render_rules(table: AlertTable, scale: float = 1.0) -> str:
    """Returns a rules file; `scale` makes every window and wait so many times as long, for who tries them out."""
    every = say_duration(pause_s(scale))
    records = [{"record": one.name, "expr": _one_line(scale_durations(one.expr, scale))} for one in table.record]
    alerts = [_alert(one, scale) for one in table.alert]
    return render_yaml(
        {
            "groups": [
                {"name": "stoker-series", "interval": every, "rules": records},
                {"name": "stoker-alerts", "interval": every, "rules": alerts},
            ]
        }
    )


def pause_s(scale: float) -> float:
    """Returns how far apart two looks are."""
    return max(LEAST_S, EVERY_S * scale)


def _alert(alert: AlertRule, scale: float) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": _one_line(scale_durations(expression_of(alert), scale)),
        "for": say_duration(alert.for_s * scale),
        "labels": {"severity": alert.severity, "id": alert.id},
        "annotations": {
            "summary": _templated(alert.title),
            "description": f"{alert.because} Now: {{{{ $value }}}}.",
            "action": _templated(alert.fix),
        },
    }


def _one_line(expression: str) -> str:
    return " ".join(expression.split())


def _templated(text: str) -> str:
    return LABEL.sub(r"{{ $labels.\1 }}", text)
