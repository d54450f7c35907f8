"""Other boxes as metrics."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily, Metric

from stoker.records.boxes import BoxView


def box_families(views: Iterable[BoxView]) -> tuple[Metric, ...]:
    """Returns whether each linked box is heard, and which of its services are READY."""
    up = GaugeMetricFamily("stoker_box_up", "1 for a linked box that is heard, 0 for one that is away.", labels=["box"])
    ready = GaugeMetricFamily(
        "stoker_box_service_ready", "1 for a service of a linked box that is READY, else 0.", labels=["box", "service"]
    )
    for view in views:
        up.add_metric([view.name], float(view.is_here))
        for one in view.replicas:
            ready.add_metric([view.name, one.service], float(one.state == "READY"))
    return up, ready
