"""Asks an endpoint for all that its clients will ask: a file a probe, found by listing this folder; each defines `PROBE`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from typing import TYPE_CHECKING

from stoker.errors import WrongUse, near_miss

if TYPE_CHECKING:  # who only asks for a name shall not wait for what the probes ask with
    from stoker.probes.kit.probe import Probe

# What the rest depends on comes first; a probe that is not named here comes last.
ORDER = (
    "answers", "identity", "streaming", "tools", "failover", "reasoning", "roles", "structured", "stop", "seed", "limits",
    "auth", "exposure", "concurrency", "n", "logit-bias", "long-context", "embeddings", "vision",
)  # fmt: skip


def names() -> list[str]:
    """Returns the names of all probes in this folder, in the order in which they are asked."""
    found = [one.name.replace("_", "-") for one in pkgutil.iter_modules(__path__) if not one.ispkg]
    return sorted(found, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))


def check_probes(named: Iterable[str]) -> None:
    """Raises WrongUse for a probe that does not exist, with the near miss, or with the names that do."""
    for name in named:
        if name not in names():
            hint = near_miss(name, names(), f"choose of: {', '.join(names())}")
            raise WrongUse(f"there is no probe called `{name}`", next_step=hint)


def find(name: str) -> Probe:
    """Returns one probe; raises WrongUse where it does not exist."""
    check_probes([name])
    probe: Probe = importlib.import_module(f"{__name__}.{name.replace('-', '_')}").PROBE
    return probe
