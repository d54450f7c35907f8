"""What of a figure is independent: one value for each repeat. Requests of one repeat share its moment, and are not.

Where the requests are kept, a repeat's value is the median of its own; else values are shared out evenly over the repeats,
as tools write them; where neither tells, there is one repeat.
"""

from __future__ import annotations

from collections.abc import Sequence

from stoker.bench.figures import OF_REQUEST, answered
from stoker.bench.intervals import median_of
from stoker.records import BenchFigure, CellResult


def values_by_repeat(result: CellResult, figure: BenchFigure) -> list[float]:
    """Returns one value for each repeat."""
    if figure.per == "repeat":
        return list(figure.values)
    groups = _by_requests(result, figure.name) if result.repeats else _shared_out(result, figure.values)
    return [median_of(group) for group in groups if group]


def _by_requests(result: CellResult, name: str) -> list[list[float]]:
    of_request = OF_REQUEST.get(name)
    if of_request is None:
        return []
    all_values = [[of_request(one) for one in answered(repeat)] for repeat in result.repeats]
    return [[value for value in values if value is not None] for values in all_values]


def _shared_out(result: CellResult, values: Sequence[float]) -> list[list[float]]:
    repeats = max((len(figure.values) for figure in result.figures if figure.per == "repeat"), default=1)
    size, rest = divmod(len(values), repeats) if repeats else (0, 1)
    if rest or not size:
        return [list(values)]
    return [list(values[place : place + size]) for place in range(0, len(values), size)]
