"""Makes figures of values, or of the one number that another tool gives."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stoker.records import BenchFigure, CellResult, FigurePer


def figure_of(name: str, per: FigurePer, values: Sequence[float]) -> BenchFigure:
    """Returns a figure of values, with the distance of their quartiles where there are enough for them."""
    import statistics  # whoever only looks for figures must not wait for it

    quartiles = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else None
    spread = quartiles[2] - quartiles[0] if quartiles else None
    return BenchFigure(name, per, tuple(values), statistics.median(values), spread, None, None)


def number_of(name: str, per: FigurePer, number: float) -> BenchFigure:
    """Returns a figure of which only one number is known: the statistic that its name says."""
    return BenchFigure(name, per, (), number, None, None, None)


def mean(values: Sequence[float]) -> float:
    """Returns the mean."""
    return math.fsum(values) / len(values)


def deviation(values: Sequence[float]) -> float:
    """Returns the deviation of all there is, not of a sample from it, as llama-benchy has it."""
    middle = mean(values)
    return math.sqrt(math.fsum((value - middle) ** 2 for value in values) / len(values))


def find_figure(result: CellResult, name: str) -> BenchFigure | None:
    """Returns a cell's figure by its name, or None."""
    return next((figure for figure in result.figures if figure.name == name), None)
