"""The gateway's and the services' own metrics, in Prometheus's text form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from stoker.records import ServiceView, State

KNOWN_PATHS = frozenset({"/health", "/metrics", "/v1/models", "/v1/chat/completions", "/v1/completions", "/v1/embeddings"})


class GatewayMetrics:
    """Counts requests as they end, and reads the services' states when asked."""

    content_type = CONTENT_TYPE_LATEST.encode()

    def __init__(self, views: Callable[[], Iterable[ServiceView]], version: str) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "stoker_gateway_requests", "Requests ended, by path, service and status; status 0: no reply was begun.",
            ["path", "service", "status"], registry=self.registry,
        )  # fmt: skip
        build = Gauge("stoker_build_info", "1, with the version of Stoker.", ["version"], registry=self.registry)
        build.labels(version).set(1)
        self.registry.register(_Services(views))

    def count(self, path: str, status: int | None, service: str = "") -> None:
        """Counts one request that ended."""
        self._requests.labels(path if path in KNOWN_PATHS else "other", service, str(status or 0)).inc()

    def render(self) -> bytes:
        """Returns the text."""
        return generate_latest(self.registry)


class _Services(Collector):
    def __init__(self, views: Callable[[], Iterable[ServiceView]]) -> None:
        self._views = views

    def collect(self) -> Iterator[GaugeMetricFamily]:
        state = GaugeMetricFamily("stoker_service_state", "1 for the state a service is in.", labels=["service", "state"])
        held = GaugeMetricFamily("stoker_service_memory_bytes", "Resident memory of the engine.", labels=["service"])
        for view in self._views():
            for one in State:
                state.add_metric([view.name, one.value], float(one is view.state))
            if view.memory_bytes is not None:
                held.add_metric([view.name], view.memory_bytes)
        yield state
        yield held
