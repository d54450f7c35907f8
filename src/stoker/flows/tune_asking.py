"""What `stoker tune` is asked for, who is told of it, and what ends it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from stoker.errors import StokerError
from stoker.flows.tunable import Knob
from stoker.records import BenchCell, BenchLoad, BenchSlo, Objective

NEAR_FLOOR = 1.25  # of what is kept for the system: below, nothing is tried any more
Say = Callable[[str], None]


class Talk(NamedTuple):
    """Who is told: `say` of each way once it is known, `tell` of what is being done now, which the next one may replace."""

    say: Say
    tell: Say


class Asking(NamedTuple):
    """What a person asks of `stoker tune`: which knob to turn, for which load to be fast, and how long that may take.

    `beside`: what runs stays up, and each way is tried as a second service beside it.
    """

    knob: Knob = "drafts"
    objective: Objective = "single"
    contents: tuple[str, ...] = ("prose",)
    budget_s: float = 1800.0
    prompt_tokens: int = 512
    new_tokens: int = 256
    concurrency: tuple[int, ...] = (1,)
    slo: BenchSlo | None = None
    measure_s: float = 60.0
    precision: float = 0.03
    seed: int = 1
    fresh: bool = False
    only: tuple[str, ...] = ()
    beside: bool = False

    def cells(self) -> tuple[BenchCell, ...]:
        """Returns what is measured of each way."""
        loads = [BenchLoad("closed", requests) for requests in self.concurrency]
        return tuple(
            BenchCell(self.prompt_tokens, self.new_tokens, 0, load, content) for content in self.contents for load in loads
        )

    def words(self) -> tuple[str, ...]:
        """Returns what says in the store how it was measured."""
        limits = () if self.slo is None else (f"--slo {self.slo}",)
        return ("tune", self.objective, f"--precision {self.precision:g}", f"--seed {self.seed}", *limits)


class TuningStopped(StokerError):
    """Nothing more may be tried: the memory is nearly gone, or a way made the service answer wrongly."""


class Interrupted(Exception):
    """A person wants it to end."""
