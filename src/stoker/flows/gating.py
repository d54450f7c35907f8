"""Asks an engine what its plan requires before it is READY, past the gateway; and keeps what was found."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from stoker.errors import StokerError
from stoker.flows.targets import planned
from stoker.probes import find, names
from stoker.probes.kit.probe import Probe
from stoker.probes.kit.run import play_probes
from stoker.records import Endpoint, KeptVerification, Plan, ProbeResult, Target
from stoker.store.verifications import VerificationStore

logger = logging.getLogger("stoker.supervise")


class Gatekeeper:
    """Stands between the first answer and READY."""

    def __init__(self, engine_key: str, limit_s: float, store: VerificationStore) -> None:
        self._engine_key = engine_key
        self._limit_s = limit_s
        self._store = store

    async def play(self, plan: Plan, endpoint: Endpoint, say: Callable[[str], None]) -> KeptVerification:
        """Returns what the plan's probes find, asked within the limit; `say` is told which one is asked."""
        probes = await asyncio.to_thread(gate_probes, plan.gate)  # it imports their files
        places = {probe.name: f"{probe.name}, {number} of {len(probes)}" for number, probe in enumerate(probes, start=1)}
        target = Target(
            url=f"http://{endpoint.host}:{endpoint.port}/v1", model=endpoint.model, key=endpoint.key or self._engine_key,
            parallel=planned(plan, "parallel"),
        )  # fmt: skip
        view = await play_probes(
            target, probes, self._limit_s, frozenset(plan.gate), _ignore, lambda probe: say(places[probe.name])
        )
        return KeptVerification(plan.service, plan.plan_id, plan.engine, plan.engine_version, "gate", plan.gate, view)

    def keep(self, kept: KeptVerification) -> None:
        """Keeps what was found; a disk that takes nothing is no reason to end what runs."""
        try:
            self._store.write(kept)
        except StokerError as problem:
            logger.warning("service=%s its gate is not kept: %s", kept.service, problem.why)


def gate_probes(required: tuple[str, ...]) -> list[Probe]:
    """Returns the probes of a gate in the order in which they are asked, with the checks that belong to a gate."""
    return [find(name).for_gate() for name in names() if name in required]


def _ignore(result: ProbeResult) -> None:
    """Says nothing of a result: it is judged when all are there."""
