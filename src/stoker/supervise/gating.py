"""The gate between the first answer and READY: the probes that a plan requires, asked of the engine itself."""

from __future__ import annotations

import time

from stoker.plan.gate import find_fault
from stoker.records import Plan, Service, say_s
from stoker.supervise.ending import let_exit_tell
from stoker.supervise.hands import Hands, known


def is_due(plan: Plan, service: Service) -> bool:
    """Tells whether a start has to pass the gate.

    One that was READY by this plan passed it then: an engine that was found alive, or is started again after a fault,
    shall serve again soon, so that its first answer is enough.
    """
    return bool(plan.gate) and not service.was_ready and not service.restarts


async def stand_before_gate(hands: Hands, service: Service) -> str:
    """Asks what the plan requires, and keeps what was found; returns what is to be said of it, nothing where it is not due.

    Raises StokerError where a required probe failed, NotReadyInTime where not all of them could be asked.
    """
    if not is_due(hands.plan, service):
        return ""
    begun_s = time.monotonic()
    try:
        kept = await hands.tools.gate.play(hands.plan, known(hands.endpoint), hands.say_gate_step)
        if fault := find_fault(kept):
            await let_exit_tell(hands)
    finally:
        hands.say_gate_step("")
    hands.tools.gate.keep(kept)
    if fault:
        raise fault
    return f"its gate passed in {say_s(time.monotonic() - begun_s)} ({', '.join(hands.plan.gate)})"
