"""The gateway's and the services' own metrics, in Prometheus's text form or OpenMetrics's, whichever is asked for."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, choose_encoder
from prometheus_client.registry import Collector

from stoker.errors import StokerError
from stoker.gateway.routes import shown
from stoker.gateway.tally import Tally, Times
from stoker.gateway.usage import Usage
from stoker.records import ServiceView, State

Look = Callable[[], Awaitable[None]]
PassOn = Callable[[str], Awaitable[bytes]]
# From a word out of a warm cache to a prompt of 200,000 tokens; from 200 tokens a second to one that nobody waits for.
TTFT_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0)
OUTPUT_TOKEN_S = (0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.0)
logger = logging.getLogger("stoker.gateway")


class Page(NamedTuple):
    """A text and its content type."""

    kind: bytes
    text: bytes


class GatewayMetrics:
    """Counts requests as they end, and reads the services' states when asked.

    `look` brings up to date what is told, and `pass_on` returns the metrics of one service's engine as they are, or raises
    StokerError.
    """

    def __init__(
        self, views: Callable[[], Iterable[ServiceView]], version: str, look: Look | None = None,
        pass_on: PassOn | None = None,
    ) -> None:  # fmt: skip
        self._look = look
        self._pass_on = pass_on
        self.registry = CollectorRegistry()
        self._requests = Tally(
            "stoker_gateway_requests", "Requests ended, by path, service and status; status 0: no reply was begun.",
            ("path", "service", "status"), self.registry,
        )  # fmt: skip
        self._departures = Tally(
            "stoker_service_departures", "Requests whose client left before their end.", ("service",), self.registry
        )
        self._ttft = Times(
            "stoker_service_ttft_seconds", "TTFT of streams, from the request on, its wait in line included.",
            "service", TTFT_S, self.registry,
        )  # fmt: skip
        self._output_token = Times(
            "stoker_service_output_token_seconds", "Mean time of a stream's tokens after its first, where it says how many.",
            "service", OUTPUT_TOKEN_S, self.registry,
        )  # fmt: skip
        self.substituted_answers = 0
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

    def measure(self, usage: Usage, service: str, left: bool) -> None:
        """Counts how long a request's tokens took, and whether its client `left`."""
        if left:
            self._departures.add((service,))
        if usage.ttft_s is None or not usage.streamed:
            return
        self._ttft.add(service, usage.ttft_s)
        tokens = usage.completion_tokens
        if tokens is not None and tokens > 1 and not left:
            rest_s = time.monotonic() - usage.began_s - usage.ttft_s
            self._output_token.add(service, max(0.0, rest_s) / (tokens - 1))

    def substituted(self, service: str, model: str, said: str) -> None:
        """Counts an answer that says that another model gave it, which must never be."""
        self.substituted_answers += 1
        self._substituted.inc()
        logger.error("service=%s was asked for %s, and its answer says it is from %s", service, model, said)

    def ungenerated(self, service: str, model: str, tokens: int) -> None:
        """Counts answers of so many tokens that their engine did not generate, which must never be either."""
        self.substituted_answers += 1
        self._substituted.inc()
        logger.error(
            "service=%s was asked for %s, and its answers said %d tokens that its engine did not generate: "
            "something else may answer at its port", service, model, tokens,
        )  # fmt: skip

    async def render(self, accept: str = "") -> Page:
        """Returns what there is to tell, once `look` has brought it up to date."""
        if self._look is not None:
            await self._look()
        encode, kind = choose_encoder(accept)
        families = _Families(list(self.registry.collect()))  # here, since what is counted is the event loop's
        return Page(kind.encode(), await asyncio.to_thread(encode, families))

    async def pass_on(self, service: str) -> Page:
        """Returns what an engine tells, under its own names; raises StokerError where it tells nothing."""
        if self._pass_on is None:
            raise StokerError("there are no metrics of engines here", why="no services are watched")
        return Page(CONTENT_TYPE_PLAIN_0_0_4.encode(), await self._pass_on(service))


class _Families(Collector):
    """What was collected before."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


class _Services(Collector):
    def __init__(self, views: Callable[[], Iterable[ServiceView]]) -> None:
        self._views = views

    def collect(self) -> Iterator[GaugeMetricFamily]:
        state = GaugeMetricFamily("stoker_service_state", "1 for the state a service is in.", labels=["service", "state"])
        held = GaugeMetricFamily("stoker_service_memory_bytes", "Resident memory of the engine.", labels=["service"])
        planned = GaugeMetricFamily(
            "stoker_service_memory_planned_bytes", "What its plan counted, on a card of its own too.", labels=["service"]
        )
        for view in self._views():
            if view.memory_need_bytes:
                planned.add_metric([view.name], view.memory_need_bytes)
            for one in State:
                state.add_metric([view.name, one.value], float(one is view.state))
            if view.memory_bytes is not None:
                held.add_metric([view.name], view.memory_bytes)
        yield state
        yield held
        yield planned
