"""What a probe's file tells of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from stoker.probes.kit.asker import Asker
from stoker.probes.kit.findings import Finding

Check = Callable[[Asker], Awaitable[Finding]]


class Probe(NamedTuple):
    """A probe: what it sends, what it expects, what a failure means to clients, and how that is mended in general.

    Each check is a function that is named after what it checks and says in its first sentence what that is; it returns a
    Finding, or lets Trouble pass. The exchanges that it has with the endpoint are kept by themselves. `tokens` is the most
    that all of them generate together. A `deep` probe is only asked with `--deep`, or by name.

    `gate` are the checks that belong to the gate before READY: those that cost little, and in which a failure is the
    engine's own; none named: all of them. `gate_tokens` is the most that these generate.
    """

    name: str
    sends: str
    expects: str
    means: str
    mend: str
    checks: tuple[Check, ...]
    tokens: int = 0
    deep: bool = False
    gate: tuple[Check, ...] = ()
    gate_tokens: int = 0

    def for_gate(self) -> Probe:
        """Returns the probe with the checks that belong to the gate alone."""
        return self._replace(checks=self.gate, tokens=self.gate_tokens) if self.gate else self


def name_of(check: Check) -> str:
    """Returns a check's name as people read it."""
    return str(getattr(check, "__name__", "check")).strip("_").replace("_", " ")
