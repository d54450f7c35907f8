"""Reads the table of alerts: one definition for the daemon's own and for Prometheus's."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import msgspec

from stoker.errors import StokerError
from stoker.records.alerting import AlertRule, AlertTable

DATA = Path(__file__).parent / "data" / "alerts.toml"


@cache
def load_alerts() -> AlertTable:
    """Returns the table; raises StokerError that says what is wrong in it."""
    return read_alerts(DATA.read_text(encoding="utf-8"))


def read_alerts(text: str) -> AlertTable:
    """Returns the table in a text; raises StokerError where an entry is malformed or there twice."""
    try:
        table = msgspec.convert(tomllib.loads(text), AlertTable)
    except (ValueError, msgspec.ValidationError) as problem:
        raise StokerError("the table of alerts cannot be read", why=str(problem)) from problem
    names = [word for one in table.alert for word in (one.id, one.name)] + [one.name for one in table.record]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise StokerError("the table of alerts cannot be read", why=f"{', '.join(twice)} is there twice")
    return table


def expression_of(alert: AlertRule) -> str:
    """Returns the condition with the alert's own number in it."""
    return alert.expr if alert.threshold is None else alert.expr.replace("$threshold", f"{alert.threshold:.12g}")
