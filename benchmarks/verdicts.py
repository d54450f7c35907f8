"""How often `stoker bench compare` is right: runs whose truth is known, compared many times.

python -m benchmarks.verdicts --trials 400 --write docs/measured/verdicts.md
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from math import exp
from pathlib import Path
from random import Random
from statistics import median

from stoker import __version__
from stoker.bench.comparing.compare import compare
from stoker.bench.comparing.sizes import ratio_of
from stoker.records import BenchCell, BenchFigure, BenchLoad, BenchRun, BenchSubject, CellResult

NAME, SEED, NOISE = "total_e2e_tps", 1, 0.03
Draw = Callable[[Random], float]
SHAPES: dict[str, Draw] = {
    "3 % around the middle": lambda random: exp(random.gauss(0, NOISE)),
    "the same, one of ten slowed by 20 %": lambda random: (
        exp(random.gauss(0, NOISE)) * (0.8 if random.random() < 0.1 else 1)
    ),
}
CASES = ((1, 5, 1.0), (8, 5, 1.0), (8, 10, 1.0), (1, 5, 1.1), (8, 5, 1.05), (8, 10, 1.05), (8, 10, 1.1))
REPEATS = (3, 5, 8, 12, 20)


def main() -> None:
    """Prints the tables, or writes them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()
    text = "\n".join(page(asked.trials))
    if asked.write:
        asked.write.write_text(text)
    else:
        print(text)


def page(trials: int) -> Iterator[str]:
    """Gives the page's lines."""
    yield from ("# How often a comparison is right", "")
    yield f"Stoker {__version__}, `python -m benchmarks.verdicts --trials {trials}`: values drawn with a seed, no server."
    yield from (
        "",
        "Runs of so many cells and repeats, B faster than A by so much. *In a cell*: the share of cells called better or",
    )
    yield "worse. *Anywhere*: the share of comparisons with any such cell. *Together*: those called so over all cells."
    for shape, draw in SHAPES.items():
        yield from (
            "",
            f"Values scatter by {shape}:",
            "",
            "| cells | repeats | true difference | in a cell | anywhere | together |",
            "|--:|--:|--:|--:|--:|--:|",
        )
        for cells, repeats, effect in CASES:
            rates = verdicts(draw, cells, repeats, effect, trials)
            told = [f"{100 * rate:.1f} %" for rate in rates]
            shown = " | ".join(told if cells > 1 else (*told[:2], "-"))
            yield f"| {cells} | {repeats} | {100 * (effect - 1):.0f} % | {shown} |"
    yield from ("", "How often the interval of 95 % holds the true ratio of one cell:", "")
    yield f"| repeats | {' | '.join(map(str, REPEATS))} |"
    yield "|--|" + "--:|" * len(REPEATS)
    for shape, draw in SHAPES.items():
        yield f"| {shape} | {' | '.join(f'{100 * coverage(draw, repeats, 5 * trials):.0f} %' for repeats in REPEATS)} |"
    yield ""


def verdicts(draw: Draw, cells: int, repeats: int, effect: float, trials: int) -> tuple[float, float, float]:
    """Returns the shares of cells, comparisons and totals that are called better or worse."""
    random, in_cells, anywhere, together = Random(SEED), 0, 0, 0
    for _ in range(trials):
        told = compare(make_run(random, draw, cells, repeats, 1.0), make_run(random, draw, cells, repeats, effect))
        found = sum(change.verdict in ("better", "worse") for cell in told.cells for change in cell.figures)
        in_cells += found
        anywhere += found > 0
        together += any(change.verdict in ("better", "worse") for change in told.overall)
    return in_cells / trials / cells, anywhere / trials, together / trials


def make_run(random: Random, draw: Draw, cells: int, repeats: int, effect: float) -> BenchRun:
    """Returns a run with one figure a cell."""
    results = []
    for number in range(1, cells + 1):
        values = tuple(100 * number * effect * draw(random) for _ in range(repeats))
        cell = BenchCell(512 * number, 128, 0, BenchLoad(concurrency=1), "code")
        figure = BenchFigure(NAME, "repeat", values, median(values), None, None, None)
        results.append(CellResult(cell, (figure,), ("usage",), repeats, 0))
    return BenchRun(None, "stoker", "", None, None, None, True, BenchSubject(None, "m"), tuple(results))


def coverage(draw: Draw, repeats: int, trials: int) -> float:
    """Returns how often the interval holds 1, where both are the same."""
    random, held = Random(SEED), 0
    for _ in range(trials):
        size = ratio_of([draw(random) for _ in range(repeats)], [draw(random) for _ in range(repeats)])
        held += size is not None and size.low <= 1 <= size.high
    return held / trials


if __name__ == "__main__":
    main()
