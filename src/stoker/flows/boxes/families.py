"""Other boxes as metrics: what Prometheus sees of each through this one's door."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily, Metric

from stoker.records.boxes import BoxView
from stoker.watch.table import alerts_by_id


def box_families(views: Iterable[BoxView], tokens: Iterable[tuple[str, str, int]]) -> tuple[Metric, ...]:
    """Returns how each linked box does; what is not known, as of one that is away, is left out."""
    up = GaugeMetricFamily("stoker_box_up", "1 for a linked box that is heard, 0 for one that is away.", labels=["box"])
    since = GaugeMetricFamily(
        "stoker_box_since_timestamp_seconds",
        "Since when a linked box is heard, or away.",
        labels=["box"],
    )
    ready = GaugeMetricFamily(
        "stoker_box_service_ready", "1 for a service of a linked box that is READY, else 0.", labels=["box", "service"]
    )
    total = GaugeMetricFamily("stoker_box_memory_total_bytes", "Memory of a linked box.", labels=["box"])
    available = GaugeMetricFamily("stoker_box_memory_available_bytes", "MemAvailable of a linked box.", labels=["box"])
    flight = GaugeMetricFamily(
        "stoker_box_tokens_in_flight",
        "Tokens in flight at a linked box's service.",
        labels=["box", "service"],
    )
    firing = GaugeMetricFamily(
        "stoker_box_alert_firing", "1 for each alert that a linked box's own daemon says fires.",
        labels=["box", "alert", "service", "about", "severity"],
    )  # fmt: skip
    for view in views:
        up.add_metric([view.name], float(view.is_here))
        since.add_metric([view.name], view.since)
        for one in view.replicas:
            ready.add_metric([view.name, one.service], float(one.state == "READY"))
        _add_health(view, total, available, firing)
    for box, service, count in tokens:
        flight.add_metric([box, service], count)
    return up, since, ready, total, available, flight, firing


def _add_health(view: BoxView, total: GaugeMetricFamily, available: GaugeMetricFamily, firing: GaugeMetricFamily) -> None:
    health = view.health
    if health is None:
        return
    if health.total_bytes is not None:
        total.add_metric([view.name], health.total_bytes)
    if health.available_bytes is not None:
        available.add_metric([view.name], health.available_bytes)
    known = alerts_by_id()
    for one in health.alerts:
        rule = known.get(one.id)  # that box's version may know others
        whom = [one.about, ""] if rule is not None and "{service}" in rule.title else ["", one.about]
        firing.add_metric([view.name, one.id, *whom, one.severity], 1.0)
