"""The gateway's and the services' own metrics, in Prometheus's text form."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from stoker.gateway.routes import shown
from stoker.gateway.tally import Tally
from stoker.records import ServiceView, State

Look = Callable[[], Awaitable[None]]
logger = logging.getLogger("stoker.gateway")


class GatewayMetrics:
    """Counts requests as they end, and reads the services' states when asked."""

    content_type = CONTENT_TYPE_LATEST.encode()

    def __init__(self, views: Callable[[], Iterable[ServiceView]], version: str, look: Look | None = None) -> None:
        self._look = look
        self.registry = CollectorRegistry()
        self._requests = Tally(
            "stoker_gateway_requests", "Requests ended, by path, service and status; status 0: no reply was begun.",
            ("path", "service", "status"), self.registry,
        )  # fmt: skip
        self._substituted = Counter(
            "stoker_gateway_substituted_answers",
            "Answers that named another model than was asked for, and times that an engine had not counted some.",
            registry=self.registry,
        )  # fmt: skip
        build = Gauge("stoker_build_info", "1, with the version of Stoker.", ["version"], registry=self.registry)
        build.labels(version).set(1)
        self.registry.register(_Services(views))

    def count(self, path: str, status: int | None, service: str = "") -> None:
        """Counts one request that ended."""
        self._requests.add((shown(path), service, str(status or 0)))

    def substituted(self, service: str, model: str, said: str) -> None:
        """Counts an answer that says that another model gave it, which must never be."""
        self._substituted.inc()
        logger.error("service=%s was asked for %s, and its answer says it is from %s", service, model, said)

    def ungenerated(self, service: str, model: str, tokens: int) -> None:
        """Counts answers of so many tokens that their engine did not generate, which must never be either."""
        self._substituted.inc()
        logger.error(
            "service=%s was asked for %s, and its answers said %d tokens that its engine did not generate: "
            "something else may answer at its port", service, model, tokens,
        )  # fmt: skip

    async def render(self) -> bytes:
        """Returns the text, once `look` has brought the views up to date."""
        if self._look is not None:
            await self._look()
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
