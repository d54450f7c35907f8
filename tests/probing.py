"""Proves an address as `stoker verify` does, and looks at what was found."""

from __future__ import annotations

from lying_engine import KEY, MODEL
from stoker.flows.verify import choose_probes, verify
from stoker.records import Target, Verdict, Verification


def prove(
    url: str, *named: str, deep: bool = False, budget_s: float = 60.0, model: str = MODEL, required: tuple[str, ...] = ()
) -> Verification:
    """Proves an address with these probes, or all of the default set."""
    return prove_target(Target(f"{url}/v1", model, KEY), *named, deep=deep, budget_s=budget_s, required=required)


def prove_target(
    target: Target, *named: str, deep: bool = False, budget_s: float = 60.0, required: tuple[str, ...] = ()
) -> Verification:
    """Proves a target, which may name the engine behind it."""
    return verify(target, choose_probes(named, required, deep), required, budget_s, lambda result: None)


def found(view: Verification) -> dict[str, tuple[Verdict, str]]:
    """Returns what each check found, by 'probe: check'."""
    return {f"{probe.name}: {check.name}": (check.verdict, check.says) for probe in view.probes for check in probe.checks}
