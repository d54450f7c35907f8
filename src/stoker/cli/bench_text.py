"""How measurements look on a terminal: a line of progress, a row a cell, and what is doubtful below."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from msgspec.structs import replace

from stoker.bench.formats.figures import find_figure
from stoker.cli.bench_progress import left_text, plan_text
from stoker.cli.bench_soak_text import soak_text
from stoker.cli.show import duration, place_text, table, wrapped
from stoker.flows.bench import Wanted
from stoker.records import BenchCell, BenchFigure, BenchLoad, BenchRun, CellResult, SpeculationSeen

UNKNOWN = "-"
POSITIONS = 8  # shown of those that drafts may have; n-grams propose 48
MEAN = "*"  # behind what another tool gives as a mean alone
# In the order of the tables that people compare: the cell, then what was seen of it.
HEADINGS = (
    "pp", "tg", "depth", "load", "TTFT", "prefill t/s", "ms/token", "decode t/s each", "e2e t/s all", "accept", "runs",
)  # fmt: skip
# Where a column's own figure is not there, as in other tools' runs: the heading and the figure that stand in for it.
INSTEAD = {
    "prefill t/s": ("chunk-prefill t/s", "first_chunk_prefill_tps"),
    "e2e t/s all": ("decode t/s all", "total_decode_tps"),
}
OWN = {"prefill t/s": "prefill_tps", "e2e t/s all": "total_e2e_tps"}


class Screen:
    """Prints as it is measured; on a terminal the last line says what is being done, elsewhere a line begins each cell."""

    def __init__(self, wanted: Wanted, *, is_silent: bool) -> None:
        self._wanted = wanted
        self._is_silent = is_silent
        self._is_live = sys.stderr.isatty() and not is_silent
        self._results: list[CellResult] = []
        self._begun_s = self._cell_begun_s = time.monotonic()
        self._took_s: list[float] = []
        self._begun: BenchCell | None = None
        if not is_silent:
            where = place_text(wanted.target.url, wanted.target.box)
            click.echo(f"{wanted.target.model} {where}, {plan_text(wanted.settings, len(wanted.cells))}")

    def tell(self, cell: BenchCell, text: str) -> None:
        """Says what is being done now."""
        if self._is_silent:
            return
        now_s, count = time.monotonic(), len(self._wanted.cells)
        left = left_text(self._wanted.settings, count, self._took_s, now_s - self._cell_begun_s)
        line = f"{len(self._results) + 1}/{count}  {cell_text(cell)}: "
        if self._is_live:
            line += "; ".join(filter(None, (text, f"{duration(now_s - self._begun_s)} so far", left)))
            click.echo(f"\r\033[K{line[: shutil.get_terminal_size().columns - 1]}", nl=False, err=True)
        elif self._begun is not cell:
            click.echo(line + "; ".join(filter(None, ("is measured", left))), err=True)
        self._begun = cell

    def note(self, result: CellResult) -> None:
        """Takes a cell; on no terminal it is printed at once, so that a log shows how far it is."""
        self._results.append(result)
        now_s = time.monotonic()
        self._took_s.append(now_s - self._cell_begun_s)
        self._cell_begun_s = now_s
        if self._is_live:
            click.echo("\r\033[K", nl=False, err=True)
        if not self._is_silent and len(self._wanted.cells) > 1:
            click.echo(f"  {cell_text(result.cell)}: {brief(result)}")

    def close(self, run: BenchRun) -> None:
        """Prints the table, and what is to be said of its rows."""
        click.echo("\n" + run_text(run))
        if run.id is not None:
            click.echo(f"\nkept as run {run.id}; `stoker bench compare` and `stoker bench report` take that number")


def without_writes(run: BenchRun) -> BenchRun:
    """Returns a run without the reads of each request, which are most of it."""
    return replace(run, cells=tuple(_cell_without_writes(one) for one in run.cells))


def _cell_without_writes(result: CellResult) -> CellResult:
    repeats = [
        replace(repeat, requests=tuple(replace(one, writes=()) for one in repeat.requests)) for repeat in result.repeats
    ]
    return replace(result, repeats=tuple(repeats))


def run_text(run: BenchRun) -> str:
    """Returns a run as a table with what is doubtful of it."""
    lines = [_table(run.cells)] if run.cells else ["nothing was measured"]
    lines += ["\n" + soak_text(one.series) for one in run.cells if len(one.series) > 1]
    lines += _said(run.cells)
    lines += [f"knee     {cell_text(one.cell)}: {one.because}" for one in run.knees]
    if run.cells:
        counted = sorted({source for one in run.cells for source in one.counted_by})
        lines.append(
            click.style(f"tokens counted by {', '.join(counted) or 'nothing'}; {_client_text(run.cells)}", dim=True)
        )
    if MEAN in lines[0]:
        lines.append(click.style(f"{MEAN} a mean; the values behind it are not known", dim=True))
    if not run.is_whole:
        lines.append(click.style("interrupted: what was measured until then is above", fg="yellow"))
    return "\n".join(lines)


def cell_text(cell: BenchCell) -> str:
    """Returns a cell in few words: `pp512 tg128 @ d4096, c8`; its text only where that is not the usual one."""
    depth = f" @ d{cell.depth_tokens}" if cell.depth_tokens else ""
    turns = f", {cell.turns} turns" if cell.turns > 1 else ""
    return f"pp{cell.prompt_tokens} tg{_new_tokens(cell)}{depth}, {load_text(cell.load)}{turns}{content_text(cell)}"


def content_text(cell: BenchCell) -> str:
    """Returns which text prompts are made of; nothing for prose, and for what other tools ask."""
    return f", {Path(cell.content).name}" if cell.content in ("code", "chat") or "/" in cell.content else ""


def _new_tokens(cell: BenchCell) -> str:
    return UNKNOWN if cell.new_tokens is None else str(cell.new_tokens)


def load_text(load: BenchLoad) -> str:
    """Returns a load in few words: c8, or 2.5/s poisson."""
    if load.arrivals == "closed":
        return f"c{load.concurrency}"
    return "trace" if load.rate_per_s is None else f"{load.rate_per_s:g}/s {load.arrivals}"


def brief(result: CellResult) -> str:
    """Returns a cell's figures in a line."""
    failed = f", {result.failed} of {result.asked} failed" if result.failed else ""
    each, total = figure_of(result, "request_decode_tps"), figure_of(result, "total_decode_tps")
    return f"TTFT {_ms(figure_of(result, 'ttft_s'))} ms, decode {_number(each)} tok/s each, {_number(total)} in all{failed}"


def figure_of(result: CellResult, name: str) -> BenchFigure | None:
    """Returns one figure of a cell, or its mean where another tool gives no more."""
    return find_figure(result, name) or find_figure(result, f"mean_{name}")


def _table(results: Sequence[CellResult]) -> str:
    """Returns the table; a figure of another tool that is defined in another way has a heading of its own."""
    headings, names = list(HEADINGS), dict(OWN)
    for heading, (other, name) in INSTEAD.items():
        if not any(figure_of(one, OWN[heading]) for one in results) and any(figure_of(one, name) for one in results):
            headings[HEADINGS.index(heading)], names[heading] = other, name
    if has_texts := len({one.cell.content for one in results}) > 1:
        headings.insert(0, "text")
    if has_good := any(figure_of(one, "goodput_share") for one in results):
        headings.insert(-1, "good")
    texts = [(Path(one.cell.content).name,) if has_texts else () for one in results]
    rows = [_row(one, names, has_good=has_good) for one in results]
    return table(tuple(headings), [(*text, *row) for text, row in zip(texts, rows, strict=True)])


def _row(result: CellResult, names: Mapping[str, str], *, has_good: bool) -> tuple[str, ...]:
    cell = result.cell
    runs = (str(len(result.repeats)) if result.repeats else UNKNOWN) + ("!" if result.warnings else "")
    return (
        str(cell.prompt_tokens), _new_tokens(cell), str(cell.depth_tokens), load_text(cell.load),
        _ms(figure_of(result, "ttft_s"), " ms"), _number(figure_of(result, names["prefill t/s"])),
        _ms(figure_of(result, "itl_token_s")), _number(figure_of(result, "request_decode_tps")),
        _number(figure_of(result, names["e2e t/s all"])), _speculation(result.speculation),
        *([_good(result)] if has_good else []), runs,
    )  # fmt: skip


def _good(result: CellResult) -> str:
    """Returns how many requests kept the limits."""
    found = figure_of(result, "goodput_share")
    return UNKNOWN if found is None else f"{100 * found.median:.0f} %"


def _number(figure: BenchFigure | None) -> str:
    return UNKNOWN if figure is None else _with_spread(figure, 1.0, 1)


def _ms(figure: BenchFigure | None, unit: str = "") -> str:
    return UNKNOWN if figure is None else _with_spread(figure, 1000.0, 1 if figure.median >= 0.01 else 2) + unit


def _with_spread(figure: BenchFigure, factor: float, places: int) -> str:
    """Returns the median, and how far the interval reaches from it, where there is one."""
    middle = figure.median * factor
    text = f"{middle:,.0f}" if middle >= 1000 else f"{middle:.{places}f}"
    text += MEAN if figure.name.startswith("mean_") else ""
    if figure.low is None or figure.high is None:
        return text
    reach = max(figure.high - figure.median, figure.median - figure.low) * factor
    return f"{text} ±{reach:,.0f}" if middle >= 1000 else f"{text} ±{reach:.{places}f}"


def _speculation(seen: SpeculationSeen | None) -> str:
    if seen is None:
        return UNKNOWN
    rate = UNKNOWN if seen.accept_rate is None else f"{100 * seen.accept_rate:.0f} %"
    return rate if seen.accept_length is None else f"{rate}, {seen.accept_length:.2f} a step"


def _said(results: Sequence[CellResult]) -> list[str]:
    lines: list[str] = []
    for result in results:
        first = f"! {cell_text(result.cell)}: "
        texts = [*result.warnings, *(f"{times} times: {text}" for text, times in result.errors)]
        lines += [click.style(line, fg="yellow") for text in texts for line in wrapped(text, first, "    ")]
        if result.speculation and result.speculation.accept_rate_by_position:
            known = result.speculation.accept_rate_by_position
            shares = ", ".join(f"{100 * one:.0f}" for one in known[:POSITIONS]) + (", ..." if len(known) > POSITIONS else "")
            lines.append(f"  {cell_text(result.cell)}: accepted by position {shares} % ({result.speculation.source})")
    return lines


def _client_text(results: Sequence[CellResult]) -> str:
    """Says what measuring itself took, at worst."""
    clients = [one.client for one in results if one.client]
    if not clients:
        return "what measuring took is not known"
    stamps = "the kernel's" if all(one.stamps == "kernel" for one in clients) else "the client's own"
    return f"times are {stamps}; the client was busy for {100 * max(one.busy for one in clients):.0f} % of the time at most"
