"""How predictions look on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

import click

from stoker.cli.rates_text import say_prediction, say_rate
from stoker.cli.show import table, wrapped
from stoker.cli.ways_text import ways_lines
from stoker.records import CapacityView, DraftingView, MeasuredView, RowPrediction, RowsView, SpeedView, SpentPart, say_s

ROW_HEADINGS = ("line", "model", "expected", "80 % interval", "the memory allows")
DRAFT_HEADINGS = ("  content", "draft tokens", "tokens a step", "tok/s", "80 % interval")
CAPACITY_HEADINGS = (
    "  people",
    "boxes",
    "tok/s of an answer",
    "slowest tenth",
    "first token",
    "slowest tenth",
    "all together",
    "busy",
)
UNKNOWN_DRAFT = "by a model as cheap as a layer of this one and its output matrix; --draft names another"
LEAST_SHARE = 0.005
GIGA, MEGA = 1e9, 1e6
SMALL_BYTES = 0.1 * GIGA  # less is said in MB, or its parts would all be 0.00


def rows_text(view: RowsView) -> str:
    """Returns the table of predictions, and below it what could not be predicted or understood."""
    lines = [table(ROW_HEADINGS, [_row(row) for row in view.rows])]
    lines += [f"line {row.line}: {row.why}" for row in view.rows if row.why]
    return "\n".join([*lines, *(note for row in view.rows for note in row.notes)])


def _row(row: RowPrediction) -> tuple[str, ...]:
    if row.decode_tok_s is None or row.low_tok_s is None or row.high_tok_s is None or row.limit_tok_s is None:
        return (str(row.line), row.model, "-", "-", "-")
    interval = f"{say_rate(row.low_tok_s)} to {say_rate(row.high_tok_s)}"
    return (str(row.line), row.model, say_rate(row.decode_tok_s), interval, say_rate(row.limit_tok_s))


def speed_text(view: SpeedView) -> str:
    """Returns what is predicted of a model: limit, expected rate, a measured one beside them, drafting and people."""
    stored = f", {view.quantisation}" if view.quantisation else ""
    lines = [f"{click.style(view.model, bold=True)}{stored}, {view.engine} on {view.machine}: predicted, not measured", ""]
    if view.machine_note:
        lines += wrapped(f"note      {view.machine_note}", "", "          ")
    if view.bandwidth_source:
        lines.append(f"memory    {view.bandwidth_bytes_per_s / GIGA:g} GB/s: {view.bandwidth_source}")
    lines += _limit(view)
    if view.expected is None:
        lines += wrapped(f"expected  unknown: {view.why}", "", "          ")
    else:
        at_once = "" if view.requests == 1 else f", {view.requests} requests together"
        lines.append(f"expected  {say_prediction(view.expected)}{at_once}; the interval should hold four times in five")
        lines.append(
            f"prompts   {view.prefill_tok_s:,.0f} tok/s for one of {view.prompt_tokens:,} tokens"
            if view.prefill_tok_s
            else ""
        )
    lines += _measured(view.measured) if view.measured else []
    lines += _drafting(view.drafting, view.draft) if view.drafting else []
    lines += _capacity(view.capacity) if view.capacity else []
    lines += ["", f"over {max(way.boxes for way in view.ways)} boxes:", *ways_lines(view.ways)] if view.ways else []
    return "\n".join(lines)


def _limit(view: SpeedView) -> list[str]:
    read = sum(part.read_bytes for part in view.reads)
    unit, size = ("GB", GIGA) if read > SMALL_BYTES else ("MB", MEGA)
    parts = ", ".join(
        f"{part.name} {part.read_bytes / size:.2f}" for part in view.reads if part.read_bytes > LEAST_SHARE * read
    )
    guess = (
        ["note      the model's shape or its quantisation is not known: taken as usual for its size"]
        if view.is_guess
        else []
    )
    bandwidth = f"{view.bandwidth_bytes_per_s / GIGA:g} GB/s"
    said = f"limit     {say_rate(view.limit_tok_s)} tok/s: each step reads {read / size:.2f} {unit} at {bandwidth}"
    return [*guess, *wrapped(f"{said} ({parts})", "", "          ")]


def _measured(seen: MeasuredView) -> list[str]:
    rest = _say_parts(seen.rest, 1.0)
    faster = -min((part.share for part in seen.rest), default=0.0)
    run = "" if seen.run_id is None else f" (run {seen.run_id})"
    said = f"measured  {seen.measured_tok_s:.4g} tok/s{run}: {seen.of_limit:.0%} of what this memory allows"
    if seen.of_limit > 1:
        return wrapped(
            f"{said}, which cannot be: other files, another quantisation, drafting, or more requests", "", "          "
        )
    if faster >= LEAST_SHARE:
        known = sum(part.share for part in seen.rest if part.share > 0)
        rest = _say_parts(seen.rest, (1 - seen.of_limit) / known)
        said += f", and {faster:.0%} faster than expected"
        return wrapped(f"{said}; the rest, parted as is expected, is {rest}" if rest else said, "", "          ")
    return wrapped(f"{said}; the rest is {rest}" if rest else said, "", "          ")


def _say_parts(parts: Sequence[SpentPart], scale: float) -> str:
    shares = ((part.name, part.share * scale) for part in parts)
    return "; ".join(f"{share:.0%} {name}" for name, share in shares if share >= LEAST_SHARE)


def _drafting(points: tuple[DraftingView, ...], draft: str) -> list[str]:
    rows = [
        (f"  {one.content}", str(one.draft_tokens), f"{one.accept_length:.2f}", say_rate(one.prediction.decode_tok_s),
         f"{say_rate(one.prediction.low_tok_s)} to {say_rate(one.prediction.high_tok_s)}")
        for one in points
    ]  # fmt: skip
    method = points[0].method
    by = f"by {draft}" if draft else UNKNOWN_DRAFT if method == "draft" else ""
    return ["", f"with drafting ({', '.join(filter(None, (method, by)))}):", table(DRAFT_HEADINGS, rows)]


def _capacity(counts: tuple[CapacityView, ...]) -> list[str]:
    rows = [
        (f"  {one.users}", str(one.boxes), say_rate(one.tok_s), say_rate(one.slow_tok_s), say_s(one.ttft_s),
         say_s(one.slow_ttft_s), say_rate(one.total_tok_s), f"{one.busy:.0%}")
        for one in counts
    ]  # fmt: skip
    return ["", f"people who think for {say_s(counts[0].think_s)} between questions:", table(CAPACITY_HEADINGS, rows)]
