"""The rows of tuning, tuned again with luck."""

from __future__ import annotations

from random import Random
from statistics import median

from benchmarks.tuning import read_rows
from benchmarks.tuning_replay import PRESENT, ROWS, Machine, powers, tune

from stoker.tune.choosing import choose, most_starts
from stoker.tune.curve import LOOKUP_GAIN, LOOKUP_SD, LOOKUP_TIME

LLAMACPP = [row for row in read_rows(ROWS) if row.engine == "llama.cpp"]


def test_without_luck_the_best_of_every_row_is_found_with_half_of_the_starts() -> None:
    for row in LLAMACPP:
        machine = Machine(row, 0.0, Random(1))
        state = tune(machine)
        assert not machine.misses(choose(state, PRESENT)[0].way), row.key
        assert state.starts <= most_starts(state)


def test_lookups_grow_by_the_powers_that_the_curve_has() -> None:
    time, tokens = zip(*(pair for row in LLAMACPP for pair in powers(row)), strict=True)
    assert abs(median(time) - LOOKUP_TIME) < LOOKUP_SD
    assert abs(median(tokens) - LOOKUP_GAIN) < LOOKUP_SD
