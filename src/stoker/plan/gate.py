"""Chooses what a service has to pass before it is READY, and says what is wrong where it did not. Pure."""

from __future__ import annotations

import msgspec

from stoker.engines import find
from stoker.errors import NotReadyInTime, Refused, StokerError
from stoker.plan.choose import with_id
from stoker.plan.wishes import USER
from stoker.records import CheckResult, KeptVerification, Model, Plan, Verdict, Wish

# What every client relies on, whatever the model and its settings are.
ALWAYS = ("answers", "identity", "streaming")


def with_gate(plan: Plan, wish: Wish, model: Model) -> Plan:
    """Returns the plan with its gate: the user's; else what every client relies on, and what the settings promise."""
    promised = find(plan.engine).promises(plan.settings, model.template_features)
    because = "".join(f", {probe} ({what} promises it)" for probe, what in promised.items())
    gate, because = (*ALWAYS, *promised), f"what every client relies on{because}"
    if wish.gate is not None:
        gate, because = wish.gate, USER
    return with_id(msgspec.structs.replace(plan, plan_id="", gate=gate, gate_because=because))


def gate_of_command(wish: Wish) -> tuple[str, ...]:
    """Returns the gate of a program that is no engine: nothing but its proof, unless its owner asks for more."""
    if wish.gate and not wish.served_name:
        raise Refused(
            f"`gate` is set for {wish.name}, and no model answers there that could be asked",
            why="a command without `served_name` is only asked for its health",
            next_step=f"leave `gate` out of [service.{wish.name}], or give it the `served_name` that clients ask for",
        )
    return wish.gate or ()


def find_fault(kept: KeptVerification) -> StokerError | None:
    """Returns why a service that was asked this may not be READY; None where nothing keeps it from that."""
    view = kept.verification
    failed = [(probe.name, one) for probe in view.probes for one in probe.checks if one.verdict is Verdict.FAIL]
    see = f"`stoker verify --last {kept.service}` shows what was asked and answered"
    if failed:
        return StokerError(f"it did not pass its gate: {_say(*failed[0], others=len(failed) - 1)}; {see}")
    if not view.in_time:
        return NotReadyInTime(f"its gate was not through within {view.budget_s:g} s (gate_s); {see}")
    return None


def _say(probe: str, check: CheckResult, others: int) -> str:
    more = f" (and {others} more)" if others else ""
    mend = f"; to mend it: {check.mend}" if check.mend else ""
    return f"{probe} ({check.name}) says: {check.says}{more}{mend}"
