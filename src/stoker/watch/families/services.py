"""What the gateway and the supervisor know of services."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

GAUGES = {
    "in_flight": ("stoker_service_requests_in_flight", "Requests that it answers or has in line."),
    "waiting": ("stoker_service_requests_waiting", "Requests that wait for their turn in the gateway."),
    "silent_s": ("stoker_service_silent_seconds", "How long its engine has sent nothing while it had requests."),
    "recent_restarts": ("stoker_service_recent_restarts", "Restarts after faults within limits.restart_window_s."),
}


class ServiceSeen(NamedTuple):
    """A service's requests in the gateway, and its restarts within limits.restart_window_s."""

    service: str
    in_flight: int
    waiting: int
    silent_s: float
    recent_restarts: int
    launches: int


def service_families(services: Iterable[ServiceSeen]) -> Iterator[Metric]:
    """Yields what is known of each service."""
    told = tuple(services)
    for field, (name, what) in GAUGES.items():
        family = GaugeMetricFamily(name, what, labels=["service"])
        for one in told:
            family.add_metric([one.service], getattr(one, field))
        yield family
    launches = CounterMetricFamily("stoker_service_launches", "Times that its engine was started.", labels=["service"])
    for one in told:
        launches.add_metric([one.service], one.launches)
    yield launches
