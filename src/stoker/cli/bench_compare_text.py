"""How a comparison looks on a terminal: what differs, what is doubtful, the verdict, and each cell."""

from __future__ import annotations

import click

from stoker.bench.comparing.words import name_figure, say_change, say_value
from stoker.cli.bench_text import cell_text
from stoker.cli.show import printable, table, wrapped
from stoker.records import BenchRun, ChangeVerdict, Comparison, Difference

UNKNOWN = "unknown"
MOST = 40
MEANS = "(means): one of the two gives no values, so how sure that is nobody can tell"
COLOURS: dict[ChangeVerdict, str] = {"better": "green", "worse": "red"}
HEADINGS = ("cell", "figure", "A", "B", "B beside A")


def comparison_text(one: Comparison) -> str:
    """Returns a comparison: B is told beside A."""
    lines = [_side("A", one.a), _side("B", one.b), "", *_differences(one.differences)]
    lines += [click.style(line, fg="yellow") for text in one.warnings for line in wrapped(printable(text), "! ", "  ")]
    if one.overall:
        lines += ["", click.style("all cells together", bold=True)]
        lines += [f"  {name_figure(change)}: {say_change(change)}" for change in one.overall]
    if any(cell.figures for cell in one.cells):
        lines += ["", table(HEADINGS, _rows(one))]
    if any(change.verdict == "means" for cell in one.cells for change in cell.figures):
        lines.append(click.style(MEANS, dim=True))
    for cell in one.cells:
        begin = f"! {cell_text(cell.cell)}: "
        lines += [
            click.style(line, fg="yellow") for text in cell.warnings for line in wrapped(printable(text), begin, "    ")
        ]
    return "\n".join([*lines, *_alone(one)])


def _side(name: str, run: BenchRun) -> str:
    number = "" if run.id is None else f"run {run.id}, "
    engine = " ".join(part for part in (run.subject.engine, run.subject.engine_version) if part)
    box = f", box {run.subject.box}" if run.subject.box else ""
    return click.style(printable(f"{name}: {number}{run.subject.model}{f' on {engine}' if engine else ''}{box}"), bold=True)


def _differences(differences: tuple[Difference, ...]) -> list[str]:
    if not differences:
        return ["The same subject, as far as is known."]
    rows = [(printable(one.what), _short(one.a), _short(one.b)) for one in differences]
    return [table(("what differs", "A", "B"), rows)]


def _short(value: str | None) -> str:
    text = UNKNOWN if value is None else printable(value) or UNKNOWN
    return text if len(text) <= MOST else f"{text[: MOST - 1]}…"


def _rows(one: Comparison) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for cell in one.cells:
        for place, change in enumerate(cell.figures):
            text = click.style(say_change(change), fg=COLOURS.get(change.verdict))
            rows.append(
                (
                    cell_text(cell.cell) if place == 0 else "",
                    name_figure(change),
                    say_value(change, change.a),
                    say_value(change, change.b),
                    text,
                )
            )
    return rows


def _alone(one: Comparison) -> list[str]:
    lines = []
    for name, cells in (("A", one.only_a), ("B", one.only_b)):
        if cells:
            text = f"only in {name}: {'; '.join(map(cell_text, cells))}"
            lines += ["", *wrapped(text, "", "  ")]
    if not one.cells:
        lines += [
            "",
            "No cell was asked of both, so nothing is compared: measure the same --pp, --tg, --depth and --concurrency.",
        ]
    return lines
