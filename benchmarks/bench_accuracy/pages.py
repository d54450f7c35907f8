"""Makes tables of what the tools said and what was true."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from benchmarks.bench_accuracy.nearest import nearest
from benchmarks.bench_accuracy.rows import NOTHING, Row

OURS = "stoker"
HOW = (
    "Each cell is the median of the repeats, with the smallest and the largest behind it. The last column names one tool\n"
    "where its worst repeat is better than every peer's best, and several where no difference is seen beyond the spread."
)


class Figure(NamedTuple):
    """What a table shows: its title, a row's value, how it is written, and what the smallest is called, if it is best."""

    title: str
    value: Callable[[Row], float | None]
    form: str
    best: str = "nearest"


FIGURES = (
    Figure("Time to the first token: error in ms", Row.ttft_off_ms, "+.2f"),
    Figure("Time per token: error in %", Row.itl_off, "+.3f"),
    Figure("Prefill rate: error in %", Row.prefill_off, "+.2f"),
    Figure("Total rate, within the window that each tool means: error in %", Row.total_off, "+.3f"),
    Figure("Processor time of the tool, its start with it: s", lambda row: row.cpu_s, ".2f", "least"),
    Figure("Time beside that in which the server answered it: s", Row.overhead_s, ".2f", "least"),
    Figure("The server's worst lateness of one write: ms", Row.late_ms, ".1f", ""),
)
Cells = Mapping[str, Mapping[str, list[float]]]


def pages(rows: Sequence[Row], tools: Sequence[str]) -> str:
    """Returns all tables, and first who is nearest in how many scenes."""
    cells = [(figure, cells_of(rows, tools, figure)) for figure in FIGURES]
    has_repeats = any(len(group) > 1 for _, table in cells for line in table.values() for group in line.values())
    heads = [_machine(rows), *([HOW, _summary(cells)] if has_repeats and len(tools) > 1 else [])]
    tables = [f"**{figure.title}**\n\n{_table(table, tools, figure, has_repeats)}" for figure, table in cells]
    return "\n\n".join([*heads, *tables])


def cells_of(rows: Sequence[Row], tools: Sequence[str], figure: Figure) -> Cells:
    """Returns a figure's values by scene and tool, one a repeat."""
    cells: dict[str, dict[str, list[float]]] = {row.scene.name: {tool: [] for tool in tools} for row in rows}
    for row in rows:
        if row.tool in tools and (value := figure.value(row)) is not None:
            cells[row.scene.name][row.tool].append(value)
    return cells


def _machine(rows: Sequence[Row]) -> str:
    loads = [row.load for row in rows]
    counts = [sum(row[:2] == (one.scene, one.tool) for row in rows) for one in rows]
    times = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    return (
        f"{'; '.join(dict.fromkeys(row.machine for row in rows))}; load average {min(loads):.1f} to {max(loads):.1f}."
        f" Runs a cell: {times}."
    )


def _summary(cells: Sequence[tuple[Figure, Cells]]) -> str:
    lines = [f"| best in how many scenes | {OURS} alone | {OURS} and others | others alone |", "|---|---|---|---|"]
    for figure, table in cells:
        if figure.best:
            found = {scene: nearest(line) for scene, line in table.items()}
            alone = sum(names == [OURS] for names in found.values())
            among = sum(OURS in names and len(names) > 1 for names in found.values())
            others = [f"{scene}: {', '.join(names)}" for scene, names in found.items() if names and OURS not in names]
            lines.append(f"| {figure.title} | {alone} | {among} | {'; '.join(others) or 0} |")
    return "\n".join(lines)


def _table(cells: Cells, tools: Sequence[str], figure: Figure, has_repeats: bool) -> str:
    best = figure.best if has_repeats and len(tools) > 1 else ""
    heads = ["scene", *tools, *([best] if best else [])]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for scene, line in cells.items():
        judged = [", ".join(nearest(line))] if best else []
        shown = [scene, *(_cell(line[tool], figure.form) for tool in tools), *judged]
        lines.append(f"| {' | '.join(shown)} |")
    return "\n".join(lines)


def _cell(values: Sequence[float], form: str) -> str:
    if not values:
        return NOTHING
    spread = f" ({min(values):{form}} to {max(values):{form}})" if len(values) > 1 else ""
    return f"{median(values):{form}}{spread}"
