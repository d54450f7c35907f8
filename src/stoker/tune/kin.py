"""What to expect of ways to draft that nothing like them was measured of: of trees and further lookup lengths. Pure.

A chain of drafts that was measured tells how often a draft is right and what drafting costs. A tree keeps several guesses
for a position, so one of them is right more often, and verifies more tokens. Another lookup length finds more or less.
None of that is sure, so the bands are wide; what a start gives of one tree then moves those that are like it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from stoker.plan.speed.speculation import FALL, expected_length
from stoker.records import Seen, Way
from stoker.tune.curve import Guess, guess_rate, length_of, log_rate

# The second of a position's guesses is right less often than the first: four count as two.
TRIES = 0.5
# Which part of what a draft token costs is verifying it, and not drafting it: much for a mixture, little for a dense model.
VERIFY, VERIFY_LEAST, VERIFY_MOST = 0.25, 0.05, 0.5
TREE_SD, ADAPTIVE_SD = 0.12, 0.08
# How much more or less another lookup length may find, as the standard deviation of a logarithm; twice that, two lengths on.
FOUND_SD = 0.5
# A longer match is found less often, each factor of two by so much, and what it finds is right more often, so that less of
# the gain is lost: its square root. In ten sweeps of llama.cpp's demo model matches of 6 gave 0.9 to 2.1 times the rate of
# matches of 3 with as many draft tokens, 1.2 to 1.6 times in the middle (docs/measured/tuning.md).
FOUND_LESS, GAIN_KEPT = 0.25, 0.5
# How much of what is off for a measured way is off for one that differs from it by a factor of two in one number.
ALIKE = 0.7
Counted = Sequence[tuple[int, Seen]]


def guess_tree(way: Way, plain: Seen, chain: Counted) -> Guess:
    """Returns the rate to expect of a tree, from chains of the same draft that were measured."""
    count, seen = max(chain, key=lambda one: one[0])
    steps, tokens = way.draft_steps or 1, way.draft_tokens or 1
    rates = _rates(way, [length_of(way.kind or "", seen, place) for place in range(count + 1)], steps)
    width = max(1.0, min(float(way.draft_topk or 1), tokens / steps))
    length = expected_length([1.0 - (1.0 - rate) ** width**TRIES for rate in rates])
    plain_s, chain_s = math.exp(-log_rate(plain)), length_of(way.kind or "", seen, count) * math.exp(-log_rate(seen))
    each_s = max(0.0, chain_s - plain_s) / count
    least_s, usual_s, most_s = (
        plain_s + each_s * ((1.0 - share) * steps + share * tokens) for share in (VERIFY_LEAST, VERIFY, VERIFY_MOST)
    )
    return Guess(math.log(length / usual_s), math.hypot(TREE_SD, math.log(most_s / least_s) / 2))


def _rates(way: Way, lengths: Sequence[float], steps: int) -> list[float]:
    """Returns how often each step of a chain is right if all before it were; beyond what was measured it falls as usual."""
    shares = [later - sooner for sooner, later in pairwise(lengths)]
    rates = [min(1.0, share / before) if before > 0 else 0.0 for before, share in pairwise([1.0, *shares])]
    while len(rates) < steps:
        rates.append(rates[-1] * FALL)
    return rates[:steps]


def guess_lookup(way: Way, plain: Seen, relative: Way, found: Counted) -> Guess:
    """Returns the rate to expect with another lookup length, from ways with the relative's."""
    count = way.draft_tokens or 1
    guess = guess_rate(count, "ngram", plain, found)
    length, plain_s = length_of("ngram", max(found, key=lambda one: one[0])[1], count), math.exp(-log_rate(plain))
    drafting_s = length * math.exp(-guess.mean) - plain_s
    less = FOUND_LESS ** _longer(way, relative)
    rarer, step_s = 1.0 + (length - 1.0) * less**GAIN_KEPT, plain_s + max(0.0, drafting_s) * less + min(0.0, drafting_s)
    found_sd = FOUND_SD * (1 + _apart(way.lookup_min, relative.lookup_min)) * (length - 1.0) / length
    return Guess(math.log(rarer / step_s), math.hypot(guess.sd, found_sd))


def _longer(way: Way, relative: Way) -> float:
    """Returns by how many factors of two a match has to be longer; 0 where it may be shorter, or nobody said."""
    return max(0.0, math.log2(way.lookup_min / relative.lookup_min)) if way.lookup_min and relative.lookup_min else 0.0


def moved(way: Way, guess: Guess, known: Sequence[tuple[Way, float, Guess]]) -> Guess:
    """Returns a guess, moved by how far off that of the way most like it was; `known`: what was measured and guessed."""
    if not known:
        return guess
    other, measured, expected = min(known, key=lambda one: distance(way, one[0]))
    share = ALIKE ** distance(way, other)
    return Guess(guess.mean + share * (measured - expected.mean), max(0.02, guess.sd * math.sqrt(1.0 - share * share)))


def distance(way: Way, other: Way) -> float:
    """Returns in how many factors of two two ways differ."""
    numbers: Sequence[Callable[[Way], int | None]] = (
        lambda one: one.draft_tokens, lambda one: one.draft_steps, lambda one: one.draft_topk, lambda one: one.lookup_min,
    )  # fmt: skip
    return sum(_apart(of(way), of(other)) for of in numbers)


def _apart(one: int | None, other: int | None) -> float:
    return 1.0 if (one is None) != (other is None) else abs(math.log2((one or 1) / (other or 1)))
