"""Compares two runs, figure by figure: sizes first, then who is told apart by a test among all cells."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from stoker.bench.comparing.cells import Pair, are_pairs, doubts_of_cells, pair_cells
from stoker.bench.comparing.permutation import (
    LEVEL,
    Null,
    are_pairs_enough,
    holm,
    least_p,
    null_of,
    null_of_pairs,
    p_of,
    p_of_all,
)
from stoker.bench.comparing.sizes import ratio_of, ratio_of_all, ratio_of_pairs
from stoker.bench.comparing.subjects import differences_of_runs
from stoker.bench.comparing.values import values_by_repeat
from stoker.bench.formats.figures import find_figure, mean
from stoker.bench.intervals import LEAST_VALUES, median_of
from stoker.records import BenchCell, BenchFigure, BenchRun, CellChange, CellResult, ChangeVerdict, Comparison, FigureChange

# What people decide by, in the order of the tables; the rest only where it is asked for.
TOTAL, DECODE_TOTAL = "total_e2e_tps", "total_decode_tps"
CHIEF = ("ttft_s", "prefill_tps", "request_decode_tps", TOTAL, DECODE_TOTAL, "accept_rate", "accept_length")


OF_SPECULATION = ("accept_rate", "accept_length")  # which other tools tell of a whole cell


class Measured(NamedTuple):
    """A figure of a cell in both runs, before any verdict: its values by repeats, and the test's null."""

    place: int
    change: FigureChange
    a: list[float]
    b: list[float]
    null: Null | None


def compare(a: BenchRun, b: BenchRun, *, all_figures: bool = False) -> Comparison:
    """Returns how b differs from a."""
    pairs = pair_cells(a.cells, b.cells)
    names = _names(pairs) if all_figures else _chief(pairs)
    judged: defaultdict[int, list[FigureChange]] = defaultdict(list)
    overall: list[FigureChange] = []
    for name in names:
        found = (_measure(a, b, pairs, place, name) for place in range(len(pairs)))
        measured = [one for one in found if one is not None]
        for place, change in _judge(measured):
            judged[place].append(change)
        overall += _over_all(name, measured)
    doubts = [tuple(doubts_of_cells(*pair)) for pair in pairs]
    shared = _shared(doubts)
    cells = tuple(
        CellChange(one.cell, tuple(judged[place]), tuple(text for text in doubts[place] if text not in shared))
        for place, (one, _) in enumerate(pairs)
    )
    return Comparison(
        _plain(a), _plain(b), differences_of_runs(a, b), (*_doubts_of_runs(a, b), *shared), cells, tuple(overall),
        _only(a, [one for one, _ in pairs]), _only(b, [other for _, other in pairs]),
    )  # fmt: skip


def _chief(pairs: Sequence[Pair]) -> list[str]:
    """Returns the figures of the tables; the total while decoding only where the total from end to end is not known."""
    has_total = any(find_figure(one, TOTAL) and find_figure(other, TOTAL) for one, other in pairs)
    return [name for name in CHIEF if not (has_total and name == DECODE_TOTAL)]


def _names(pairs: Sequence[Pair]) -> list[str]:
    return list(
        dict.fromkeys(figure.name for one, _ in pairs for figure in one.figures if not figure.name.startswith("std_"))
    )


def _plain(run: BenchRun) -> BenchRun:
    return msgspec.structs.replace(run, cells=())


def _only(run: BenchRun, shared: Sequence[CellResult]) -> tuple[BenchCell, ...]:
    return tuple(one.cell for one in run.cells if not any(one is each for each in shared))


def _shared(doubts: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Returns what is doubtful of every cell, to be said once."""
    return tuple(text for text in doubts[0] if all(text in each for each in doubts)) if len(doubts) > 1 else ()


def _doubts_of_runs(a: BenchRun, b: BenchRun) -> list[str]:
    doubts = [
        f"{name} is not whole: its other cells were not measured" for name, run in (("A", a), ("B", b)) if not run.is_whole
    ]
    if a.tool != b.tool:
        doubts.append(f"{a.tool} and {b.tool} take times and count tokens in their own ways; docs/bench-runs.md says how")
    return doubts


# One figure of one cell.


def _measure(a: BenchRun, b: BenchRun, pairs: Sequence[Pair], place: int, name: str) -> Measured | None:
    one, other = pair = pairs[place]
    among = len(pairs)
    found = find_figure(one, name), find_figure(other, name)
    if found[0] is None or found[1] is None or not (found[0].values and found[1].values):
        change = _by_means(name, *(_mean_of(each, name) for each in pair))
        return None if change is None else Measured(place, change, [], [], None)
    of_a, of_b = (values_by_repeat(result, figure) for result, figure in zip(pair, found, strict=True) if figure is not None)
    if not (of_a and of_b) or min(*of_a, *of_b) <= 0:  # a ratio needs both, and an accept rate may well be 0
        return None
    count = min(len(of_a), len(of_b))
    are_paired = len(of_a) == len(of_b) and are_pairs_enough(count, among) and are_pairs(a, b, one, other)
    size = ratio_of_pairs(of_a, of_b) if are_paired else ratio_of(of_a, of_b)
    ratio = median_of([top / bottom for bottom, top in zip(of_a, of_b, strict=True)]) if are_paired else 0.0
    middles = median_of(of_a), median_of(of_b)
    change = FigureChange(
        name, *middles, ratio or middles[1] / middles[0], size.low if size else None, size.high if size else None,
        len(of_a), len(of_b), are_paired, None, None, "too few",
    )  # fmt: skip
    null = None
    if count >= LEAST_VALUES:
        null = null_of_pairs(of_a, of_b) if are_paired else null_of(of_a, of_b)
    return Measured(place, change, of_a, of_b, null)


def _mean_of(result: CellResult, name: str) -> tuple[float, int] | None:
    """Returns a figure's mean and how many repeats it is of: of its values, or as another tool gives it."""
    figure = find_figure(result, name)
    if figure is not None and figure.values:
        return mean(figure.values), len(values_by_repeat(result, figure))
    if name in OF_SPECULATION and figure is None:
        seen = getattr(result.speculation, name, None)
        return None if seen is None else (seen, 0)
    told: BenchFigure | None = find_figure(result, f"mean_{name}") or figure
    return None if told is None else (told.median, 0)


def _by_means(name: str, a: tuple[float, int] | None, b: tuple[float, int] | None) -> FigureChange | None:
    if a is None or b is None or a[0] <= 0:
        return None
    return FigureChange(name, a[0], b[0], b[0] / a[0], None, None, a[1], b[1], False, None, None, "means")


# One figure in all cells.


def _judge(measured: Sequence[Measured]) -> list[tuple[int, FigureChange]]:
    """Returns each cell's change with its verdict; many cells make one lucky p likely, so each counts among all (Holm)."""
    tested = [one for one in measured if one.null is not None and least_p(one.null) <= LEVEL]
    adjusted = holm([p_of(one.null) for one in tested if one.null is not None])
    by_place = {one.place: p for one, p in zip(tested, adjusted, strict=True)}
    return [(one.place, _judged(one, by_place.get(one.place), len(tested))) for one in measured]


def _judged(one: Measured, p_holm: float | None, among: int) -> FigureChange:
    if one.null is None or p_holm is None:
        return one.change
    can_tell = least_p(one.null) * among <= LEVEL
    verdict: ChangeVerdict = _direction(one.change) if p_holm <= LEVEL else "alike" if can_tell else "too few"
    return msgspec.structs.replace(one.change, p=p_of(one.null), p_holm=p_holm, verdict=verdict)


def _direction(change: FigureChange) -> ChangeVerdict:
    return "better" if (change.ratio > 1) == is_more_better(change.name) else "worse"


def is_more_better(name: str) -> bool:
    """Tells whether a larger figure is the better one: rates and shares, but not times."""
    return not name.endswith("_s") or name.endswith("_per_s")


def _over_all(name: str, measured: Sequence[Measured]) -> list[FigureChange]:
    """Returns one change for all cells together, where there are several with values enough."""
    whole = [one for one in measured if one.null is not None and one.change.low is not None]
    if len(whole) < 2:
        return []
    nulls = [one.null for one in whole if one.null is not None]
    ratio, size = ratio_of_all([(one.a, one.b) for one in whole])
    p = p_of_all(nulls)
    change = FigureChange(
        name, 1.0, ratio, ratio, size.low, size.high, sum(len(one.a) for one in whole), sum(len(one.b) for one in whole),
        any(one.change.is_paired for one in whole), p, p, "alike",
    )  # fmt: skip
    return [msgspec.structs.replace(change, verdict=_direction(change))] if p <= LEVEL else [change]
