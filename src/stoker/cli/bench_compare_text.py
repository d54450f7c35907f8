"""How a comparison looks on a terminal: what differs, what is doubtful, the verdict, and each cell."""

from __future__ import annotations

import click

from stoker.bench.comparing.compare import is_more_better
from stoker.cli.bench_text import cell_text
from stoker.cli.show import printable, table, wrapped
from stoker.records import BenchRun, ChangeVerdict, Comparison, Difference, FigureChange

UNKNOWN = "unknown"
MOST = 40
MEANS = "(means): one of the two gives no values, so how sure that is nobody can tell"
COLOURS: dict[ChangeVerdict, str] = {"better": "green", "worse": "red"}
HEADINGS = ("cell", "figure", "A", "B", "B beside A")
NAMES = {
    "ttft_s": "TTFT, ms", "prefill_tps": "prefill t/s", "request_decode_tps": "decode t/s each",
    "total_e2e_tps": "e2e t/s all", "total_decode_tps": "decode t/s all",
    "accept_rate": "accept rate", "accept_length": "accept length",
}  # fmt: skip
WORDS = {True: ("faster", "slower"), False: ("shorter", "longer")}  # by whether more is better; first what is better
SHARES = ("accept_rate", "accept_length", "goodput_share")


def comparison_text(one: Comparison) -> str:
    """Returns a comparison: B is told beside A."""
    lines = [_side("A", one.a), _side("B", one.b), "", *_differences(one.differences)]
    lines += [click.style(line, fg="yellow") for text in one.warnings for line in wrapped(printable(text), "! ", "  ")]
    if one.overall:
        lines += ["", click.style("all cells together", bold=True)]
        lines += [f"  {_name(change)}: {verdict_text(change)}" for change in one.overall]
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
    return click.style(printable(f"{name}: {number}{run.subject.model}{f' on {engine}' if engine else ''}"), bold=True)


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
            text = click.style(verdict_text(change), fg=COLOURS.get(change.verdict))
            rows.append(
                (
                    cell_text(cell.cell) if place == 0 else "",
                    _name(change),
                    _value(change, change.a),
                    _value(change, change.b),
                    text,
                )
            )
    return rows


def _name(change: FigureChange) -> str:
    return NAMES.get(change.name, change.name)


def _value(change: FigureChange, value: float) -> str:
    if change.name == "accept_rate":
        return f"{value:.0%}"
    number = value * 1000 if change.name == "ttft_s" else value
    return f"{number:,.0f}" if number >= 1000 else f"{number:.4g}"


def verdict_text(change: FigureChange) -> str:
    """Returns a change as a sentence: 'faster by 12 % (9 to 15)', 'no difference seen (between -3 and +2 %)'."""
    if change.verdict in ("better", "worse"):
        sign = 1 if change.ratio >= 1 else -1
        ends = (change.low or change.ratio, change.high or change.ratio)
        reach = " to ".join(_plain(end) for end in sorted(sign * _percent(end) for end in ends))
        paired = ", paired" if change.is_paired else ""
        return f"{_word(change)} by {_plain(abs(_percent(change.ratio)))} % ({reach}{paired})"
    if change.verdict == "means":
        return f"{_signed(change.ratio)} (means)"
    if change.low is None or change.high is None:
        return f"{_signed(change.ratio)}, of {change.count_a} and {change.count_b} repeats: too few to tell"
    between = f"between {_signed(change.low, '')} and {_signed(change.high)}"
    if change.verdict == "too few":
        return f"{_signed(change.ratio)} ({between}); too few repeats to tell in one cell"
    return f"no difference seen ({between})"


def _word(change: FigureChange) -> str:
    if change.name in SHARES:
        return "higher" if change.ratio > 1 else "lower"
    better, worse = WORDS[is_more_better(change.name)]
    return better if change.verdict == "better" else worse


def _percent(ratio: float) -> float:
    return 100 * (ratio - 1)


def _plain(percent: float) -> str:
    return f"{percent:.0f}" if abs(percent) >= 10 else f"{percent:.1f}"


def _signed(ratio: float, unit: str = " %") -> str:
    percent = _percent(ratio)
    return f"{percent:+.0f}{unit}" if abs(percent) >= 10 else f"{percent:+.1f}{unit}"


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
