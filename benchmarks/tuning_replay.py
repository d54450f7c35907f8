"""Tunes made machines that have the rates of llama.cpp's swept rows, each start off by its own luck; counts what is missed.

    python -m benchmarks.tuning_replay [--rows docs/measured/tuning.jsonl] [--draws 80]

Also says by which powers of its draft tokens a lookup's time and tokens grow in those rows (`tune/curve.py` has them), and,
of both engines' rows, how far off the guesses of fewer draft tokens than any measured are, and how many sweeps' rates lie in
their bands, which should hold four in five; less what changed for all ways alike, and without the luck of a start.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from random import Random

import msgspec

from benchmarks.tuning import read_rows
from benchmarks.tuning_page import NEAR, Figure, Row
from stoker.engines import find
from stoker.records import Seen, Sighting, Way
from stoker.tune.choosing import State, choose, next_pair, next_scout, next_way
from stoker.tune.curve import EIGHTY, LOOKUP_GAIN, guess_rate
from stoker.tune.families import plan_families
from stoker.tune.guessing import guess_all
from stoker.tune.luck import BASE_SD
from stoker.tune.ratios import together
from stoker.tune.reading import lengths_from_mean

ROWS = Path(__file__).parents[1] / "docs" / "measured" / "tuning.jsonl"
FAMILIES = plan_families(find("llamacpp"), "draft", has_draft_layers=False)
PRESENT = Way("draft", 3)
LUCK = (0.0, 0.02, 0.035, 0.05)
REPEATS, PROMPT_SD, NOISE_SD = 40, 0.2, 0.02


class Machine:
    """Has a row's rates, and gives them with the luck of a start."""

    def __init__(self, row: Row, luck_sd: float, random: Random) -> None:
        self._figures, self._luck_sd, self._random = {one.way: one for one in row.figures}, luck_sd, random
        self._best = row.best
        self._prompts = [random.gauss(0.0, PROMPT_SD) for _ in range(REPEATS)]

    def misses(self, way: Way) -> bool:
        """Tells whether a way is further behind the sweep's best than a choice may be."""
        return self._rate(way.name) < (1 - NEAR) * self._rate(self._best)

    def _rate(self, name: str) -> float:
        rate = self._figures[name].swept_tok_s
        assert rate is not None
        return rate

    def measure(self, way: Way) -> Sighting:
        """Starts a way once, and measures it."""
        luck = self._random.gauss(0.0, self._luck_sd)
        rate = self._rate(way.name) * math.exp(luck)
        rates = tuple(rate * math.exp(one + self._random.gauss(0.0, NOISE_SD)) for one in self._prompts)
        count, length = way.draft_tokens or 0, self._length(way)
        lengths = () if length is None else lengths_from_mean((length - 1) / count, count)
        base_s = math.exp(self._random.gauss(-luck, BASE_SD)) / self._rate("off") if way.kind in ("off", "ngram") else None
        return Sighting(way, (Seen("text", rates, lengths, "mean" if lengths else "usual", base_step_s=base_s),))

    def _length(self, way: Way) -> float | None:
        """Returns the tokens of a step: of a lookup that was not tuned, by the nearest that was."""
        if (known := self._figures[way.name].accept_length) is not None or not way.lookup_min:
            return known
        for least in (way.lookup_min, 9 - way.lookup_min):  # matches of 3 and of 6
            for count, length in lengths_after(self._figures.values(), least):
                return float(1 + (length - 1) * ((way.draft_tokens or 1) / count) ** LOOKUP_GAIN)
        return None


def lengths_after(figures: Iterable[Figure], least: int) -> list[tuple[int, float]]:
    """Returns the tokens of a step that tuning saw of lookups after matches of `least`, by their draft tokens."""
    names = {f"ngram {count} after {least}": count for count in (8, 16, 32)}
    return sorted((names[one.way], one.accept_length) for one in figures if one.way in names and one.accept_length)


def tune(machine: Machine) -> State:
    """Explores a machine as `stoker tune` does."""
    state = State(FAMILIES)
    way: Way | None = PRESENT
    while way is not None:
        state = msgspec.structs.replace(state, measured=(*state.measured, machine.measure(way)))
        way = next_scout(state) or next_way(state, guess_all(state))
    for again in next_pair(state, PRESENT):
        seen = (together(one, machine.measure(again)) if one.way == again else one for one in state.measured)
        state = msgspec.structs.replace(state, measured=tuple(seen))
    return state


def powers(row: Row) -> Iterator[tuple[float, float]]:
    """Returns by which powers of the draft tokens a step's added time and gained tokens grew between two lookups."""
    tuned = {one.way: one.tuned_tok_s for one in row.figures}
    off_s = 1 / (tuned["off"] or math.inf)
    for least in (3, 6):
        known = [(count, length, length / rate - off_s) for count, length in lengths_after(row.figures, least)
                 if (rate := tuned[f"ngram {count} after {least}"])]  # fmt: skip
        for (a, length, added_s), (b, longer, more_s) in pairwise(known):
            if added_s > 0 < more_s:
                apart = math.log(b / a)
                yield math.log(more_s / added_s) / apart, math.log((longer - 1) / (length - 1)) / apart


def fewer(row: Row) -> Iterator[tuple[float, bool]]:
    """Returns how far off each guess of fewer draft tokens is, as a logarithm, and whether its band held what was swept."""
    both = [(one, one.tuned_tok_s, one.swept_tok_s) for one in row.figures]
    known = {one.way: (tuned, swept, one.accept_length) for one, tuned, swept in both if tuned and swept}
    drift = statistics.fmean(math.log(tuned / swept) for tuned, swept, _ in known.values())
    family = [(count, _chain_seen(count, tuned, length)) for count in range(1, 9)
              for tuned, _, length in [known.get(f"draft {count}", (0.0, 0.0, None))] if length]  # fmt: skip
    if len(family) < 2 or "off" not in known:
        return
    for count in range(1, family[0][0]):
        swept = next((one.swept_tok_s for one in row.figures if one.way == f"draft {count}"), None)
        if swept:
            guess = guess_rate(count, "draft", Seen("text", (known["off"][0],) * 2), family)
            off = guess.mean - math.log(swept) - drift
            yield off, abs(off) <= EIGHTY * guess.sd


def _chain_seen(count: int, rate: float, length: float) -> Seen:
    return Seen("text", (rate, rate), lengths_from_mean((length - 1) / count, count), "mean")


def main() -> None:
    """Says all three."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument("--draws", type=int, default=80)
    options = parser.parse_args()
    kept = read_rows(options.rows)
    rows = [row for row in kept if row.engine == "llama.cpp"]
    for name, each in zip(
        ("time", "tokens"), zip(*(pair for row in rows for pair in powers(row)), strict=True), strict=True
    ):
        print(f"{name}: {statistics.median(each):.2f} in the middle of {len(each)}, {min(each):.2f} to {max(each):.2f}")
    guesses = [pair for row in kept for pair in fewer(row)]
    off = statistics.fmean(abs(one) for one, _ in guesses)
    print(
        f"fewer draft tokens: {off:.3f} off in the mean, {sum(held for _, held in guesses)} of {len(guesses)} in their bands"
    )
    for luck_sd in LUCK:
        random = Random(1)
        machines = [Machine(row, luck_sd, random) for row in rows for _ in range(options.draws)]
        tuned = [(machine, tune(machine)) for machine in machines]
        missed = sum(machine.misses(choose(state, PRESENT)[0].way) for machine, state in tuned)
        starts = statistics.fmean(state.starts for _, state in tuned)
        print(
            f"starts off by {luck_sd:.1%}: {missed} of {len(tuned)} over {NEAR:.0%} behind, {starts:.1f} starts", flush=True
        )


if __name__ == "__main__":
    main()
