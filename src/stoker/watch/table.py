"""The alerts by their ids: those that Prometheus can tell as well, and those that only the daemon can."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from stoker.errors import WrongUse, near_miss
from stoker.records.alerting import AlertRule
from stoker.watch.alerts import load_alerts, read_alerts

INSIDE = Path(__file__).parent / "data" / "inside.toml"
# What an alert was seen of: keys that a detector does not name were not looked at. None: it is not so.
Looked = dict[tuple[str, str], str | None]


@cache
def alerts_by_id() -> Mapping[str, AlertRule]:
    """Returns all alerts that the daemon itself can notice."""
    inside = read_alerts(INSIDE.read_text(encoding="utf-8")).alert
    return {one.id: one for one in (*load_alerts().alert, *inside) if not one.outside}


def threshold(alert: str) -> float:
    """Returns an alert's own number."""
    number = alerts_by_id()[alert].threshold
    return 0.0 if number is None else number


def find_alert(alert: str) -> AlertRule:
    """Returns an alert; raises WrongUse with the nearest id."""
    known = alerts_by_id()
    if alert not in known:
        raise WrongUse(f"there is no alert `{alert}`", next_step=near_miss(alert, known, "`stoker alerts --all` lists them"))
    return known[alert]
