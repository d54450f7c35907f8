"""How predictions look on a terminal."""

from __future__ import annotations

from stoker.cli.show import table
from stoker.records import RowPrediction, RowsView

ROW_HEADINGS = ("line", "model", "expected", "80 % interval", "the memory allows")


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


def say_rate(rate: float) -> str:
    """Returns a rate with as many digits as mean something: '7.9', '31', '214'."""
    return f"{rate:.1f}" if rate < 20 else f"{rate:.0f}"
