"""What a load is worth: requests within limits, and the concurrency from which more does not pay. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby, pairwise

import msgspec

from stoker.records import BenchCell, BenchKnee, BenchSlo, CellResult, RequestSeen

WORTH = 0.05  # a step in concurrency that brings less per doubling is not worth what each request loses by it
LEAST_STEPS = 3


def is_good(one: RequestSeen, slo: BenchSlo, itl_token_s: float | None) -> bool:
    """Tells whether a request kept every limit; one that failed kept none, and one without a figure for a limit neither."""
    if one.error:
        return False
    kept = ((slo.ttft_s, one.ttft_s), (slo.itl_token_s, itl_token_s), (slo.e2e_s, one.last_token_s))
    return all(limit is None or (seen is not None and seen <= limit) for limit, seen in kept)


def find_knees(results: Iterable[CellResult]) -> tuple[BenchKnee, ...]:
    """Returns the knee of each sweep of concurrency among these cells: three or more that differ in nothing else."""
    swept = [one for one in results if one.cell.load.arrivals == "closed" and one.cell.load.concurrency and _total(one)]
    by_rest = sorted(swept, key=lambda one: (_rest(one.cell), one.cell.load.concurrency))
    groups = (list(group) for _, group in groupby(by_rest, key=lambda one: _rest(one.cell)))
    return tuple(_knee(group) for group in groups if len(group) >= LEAST_STEPS)


def _rest(cell: BenchCell) -> str:
    """Returns what a cell is apart from its concurrency."""
    plain = msgspec.structs.replace(cell, load=msgspec.structs.replace(cell.load, concurrency=None))
    return msgspec.json.encode(plain).decode()


def _total(result: CellResult) -> float:
    return next((figure.median for figure in result.figures if figure.name == "total_e2e_tps"), 0.0)


def _knee(group: list[CellResult]) -> BenchKnee:
    """Returns the last step before the first whose gain, per doubling of concurrency, is below WORTH."""
    for before, after in pairwise(group):
        factor = (after.cell.load.concurrency or 1) / (before.cell.load.concurrency or 1)
        gain = _total(after) / _total(before) - 1
        if gain < WORTH * (factor - 1):
            said = f"concurrency {after.cell.load.concurrency} brings {100 * gain:+.0f} % in all"
            return _knee_at(before, said)
    return _knee_at(group[-1], "the highest that was measured still brings more")


def _knee_at(result: CellResult, because: str) -> BenchKnee:
    return BenchKnee(result.cell, result.cell.load.concurrency or 1, _total(result), because)
