"""Reads a table of rows to predict, in the columns of published measurements. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from stoker.errors import WrongUse
from stoker.plan.speed.prediction import Fit, predict_row
from stoker.plan.speed.rows import COLUMNS, UNKNOWN, number
from stoker.records import RowPrediction, RowsView

NUMBERS = ("total_params_b", "active_params_b", "weights_gb", "num_spec_tokens", "prompt_tokens", "depth", "concurrency")
BYTES_MARK = "\ufeff"
MOST_SAID = 40


def predict_table(text: str, fit: Fit) -> RowsView:
    """Returns a prediction for each row; raises WrongUse with line and column where the text is no such table."""
    return RowsView(tuple(_predict(line, row, fit) for line, row in read_table(text)))


def read_table(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yields each row with its line, only the columns that are no measurement; raises WrongUse where it is no table."""
    reader = csv.reader(io.StringIO(text.removeprefix(BYTES_MARK), newline=""), strict=True)
    header: list[str] = []
    begin = 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            column = "the first column" if not header else f"column `{header[0]}` or after it"
            raise WrongUse(
                f"line {begin}, {column}: this is no CSV", why=str(error), next_step="see how its quotes are closed"
            ) from error
        line, begin = begin, reader.line_num + 1
        if not header:
            header = _check_header([cell.strip() for cell in cells])
        elif cells:
            yield line, {name: cell for name, cell in _named(line, header, cells).items() if name in COLUMNS}
    if not header:
        raise WrongUse(
            "line 1, column 1: the table is empty", next_step=f"begin with the columns: {', '.join(COLUMNS[:5])}, ..."
        )


def _check_header(header: list[str]) -> list[str]:
    if "model" not in header:
        raise WrongUse(
            "line 1, column 1: no column is called `model`",
            why=f"the first line names {', '.join(map(repr, header[:3]))}",
            next_step=f"name the columns in the first line: {', '.join(COLUMNS)}",
        )
    twice = next((name for place, name in enumerate(header) if name and name in header[:place]), None)
    if twice is not None:
        place = len(header) - header[::-1].index(twice)
        raise WrongUse(f"line 1, column {place}: a second column is called `{twice}`", next_step="leave one of them out")
    return header


def _named(line: int, header: list[str], cells: list[str]) -> dict[str, str]:
    if len(cells) > len(header):
        raise WrongUse(
            f"line {line}, column {len(header) + 1}: there is a cell more than the first line names columns",
            why=f"it holds {cells[len(header)][:MOST_SAID]!r}",
            next_step="put a cell that has a comma between double quotes",
        )
    return dict(zip(header, cells, strict=False))


def _predict(line: int, row: dict[str, str], fit: Fit) -> RowPrediction:
    odd = [name for name in NUMBERS if _is_odd(row.get(name, ""))]
    notes = tuple(f"line {line}, column `{name}`: {row[name][:MOST_SAID]!r} is no number, taken as unknown" for name in odd)
    found = predict_row(row, fit)
    name = row.get("model", "")
    if isinstance(found, str):
        return RowPrediction(line, name, why=found, notes=notes)
    return RowPrediction(
        line, name, round(found.decode_tok_s, 2), round(found.low_tok_s, 2), round(found.high_tok_s, 2),
        round(found.limit_tok_s, 2), notes=notes,
    )  # fmt: skip


def _is_odd(cell: str) -> bool:
    return cell.strip().lower() not in UNKNOWN and number(cell) is None
