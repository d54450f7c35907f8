"""Says what a service waits for, and what limits the wait."""

from __future__ import annotations

from stoker.config import LimitsConfig
from stoker.records import Service, State, say_bytes
from stoker.supervise.machine import backoff_s


def describe_wait(
    service: Service, need_bytes: int, limits: LimitsConfig, gate_step: str = "", on_card: str = ""
) -> str | None:
    """Returns what is awaited in this state and for how long at most; None in states that wait for nothing.

    `gate_step` is what its gate asks for now, `on_card` what is said of the card that it waits for.
    """
    need, floor = say_bytes(need_bytes), say_bytes(limits.memory_floor_bytes)
    if service.state is State.PROVING and gate_step:
        return f"its gate: it proves {gate_step} (gate_s {limits.gate_s:g})"
    waits = {
        State.WAITING_FOR_MEMORY: (f"{need} above the floor of {floor}{on_card}", "memory_wait_s", limits.memory_wait_s),
        State.LOADING: ("it to load", "load_s", limits.load_s),
        State.PROVING: ("a first answer", "prove_s", limits.prove_s),
        State.DRAINING: ("requests to end", "drain_s", limits.drain_s),
        State.STOPPING: ("its processes to end", "stop_grace_s", limits.stop_grace_s),
        State.SETTLING: ("its memory to be back", "settle_s", limits.settle_s),
    }
    if service.state is State.BACKOFF:
        return f"the next start, {backoff_s(service):g} s after the fault"
    if service.state not in waits:
        return None
    what, name, limit_s = waits[service.state]
    return f"{what} ({name} {limit_s:g})"
