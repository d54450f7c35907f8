"""Ways that were measured, for tests: of published sweeps, and of machines whose truth is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from random import Random

from stoker.records import Record, Seen, Sighting, Way
from stoker.tune.families import OFF

OFF_RATE = 35.0
# Gemma 4 26B-A4B with its MTP drafter on a GB10 (seed 003): draft tokens, tok/s, accepted / proposed draft tokens.
GEMMA = {2: (67.5, 0.87), 3: (71.2, 0.84), 4: (80.0, 0.76), 5: (76.9, 0.66), 6: (72.2, 0.56)}
REPEATS = 5


def see(way: Way, *rates: float, content: str = "code", **more: object) -> Sighting:
    """Returns a way that was measured for one content."""
    return Sighting(way, (Seen(content, rates, **more),))  # type: ignore[arg-type]


def steady(rate: float, spread: float = 0.002) -> tuple[float, ...]:
    """Returns repeats around a rate that differ little."""
    return tuple(rate * math.exp(spread * (place - REPEATS // 2)) for place in range(REPEATS))


class World(Record, frozen=True):
    """A machine and a draft whose truth is known: how often each position is right, and what a step costs."""

    rates: tuple[float, ...]
    plain_s: float
    each_s: float
    begin_s: float
    curved: float
    noise: float
    start_sd: float = 0.0  # how far a start is off by itself, as the standard deviation of a logarithm

    def length(self, count: int) -> float:
        """The tokens of a step with so many draft tokens."""
        return 1 + sum(accumulate(self.rates[:count], lambda before, rate: before * rate))

    def tok_s(self, way: Way) -> float:
        """The true rate of a way."""
        if way == OFF:
            return 1 / self.plain_s
        count = way.draft_tokens or 1
        step_s: float = self.plain_s + self.begin_s + self.each_s * count**self.curved
        return self.length(count) / step_s

    def measure(self, way: Way, random: Random) -> Sighting:
        """Measures a way: repeats scatter, prompt by prompt the same for all ways, and a little by themselves."""
        prompts = [random.gauss(0.0, self.noise) for _ in range(REPEATS)]
        luck = random.gauss(0.0, self.start_sd) if self.start_sd else 0.0
        rates = tuple(self.tok_s(way) * math.exp(luck + one + random.gauss(0.0, self.noise / 4)) for one in prompts)
        lengths: Sequence[float] = () if way == OFF else [self.length(one + 1) for one in range(way.draft_tokens or 1)]
        return see(way, *rates, lengths=tuple(lengths), lengths_by="positions" if lengths else "usual")
