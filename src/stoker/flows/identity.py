"""Looks now and then whether the engines counted what their answers said."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping

from stoker.engines import find
from stoker.gateway.ledger import Ledger, Seen
from stoker.gateway.metrics import GatewayMetrics
from stoker.gateway.serving import Serving
from stoker.records import Endpoint
from stoker.supervise.service import ServiceOwner

ReadCounters = Callable[[Endpoint], Awaitable[tuple[str, ...] | None]]


class IdentityCheck:
    """Watches all services; says in the metrics and the log where an answer cannot have come from its engine."""

    def __init__(
        self, owners: Mapping[str, ServiceOwner], serving: Serving, read_counters: ReadCounters, metrics: GatewayMetrics,
        every_s: float,
    ) -> None:  # fmt: skip
        self._owners = owners
        self._serving = serving
        self._read_counters = read_counters
        self._metrics = metrics
        self._every_s = every_s
        self._ledgers: defaultdict[str, Ledger] = defaultdict(Ledger)

    async def run(self) -> None:
        """Looks again and again until cancelled."""
        while True:
            await asyncio.sleep(self._every_s)
            for owner in list(self._owners.values()):
                await self.look(owner)

    async def look(self, owner: ServiceOwner) -> None:
        """Looks at one service, between its requests: one that is under way is counted by neither side."""
        plan, endpoint = owner.plan, owner.endpoint
        if endpoint is None or not plan.is_engine or self._serving.in_flight(plan.service):
            return
        said = self._serving.said_tokens(plan.service)
        counters = await self._read_counters(endpoint) or ()
        generated = read_total(counters, find(plan.engine).metrics["generated_tokens_total"])
        is_quiet = not self._serving.in_flight(plan.service) and said == self._serving.said_tokens(plan.service)
        if generated is None or not is_quiet:
            return
        missing = self._ledgers[plan.service].judge((owner.service.launch, endpoint.port), Seen(generated, said))
        if missing:
            self._metrics.ungenerated(plan.service, plan.model, missing)


def read_total(lines: Iterable[str], name: str) -> int | None:
    """Adds up a counter over its labels in Prometheus's text form; None where it is not there."""
    values = [line.rpartition(" ")[2] for line in lines if line.split("{")[0].split(" ")[0] == name]
    try:
        return int(sum(map(float, values))) if values else None
    except (ValueError, OverflowError):
        return None
