"""Predicts speeds: of the rows of a table, of a model that is here, or of one that is only known by name."""

from __future__ import annotations

import sys
from pathlib import Path

from stoker.errors import WrongUse
from stoker.plan.speed.prediction import load_fit
from stoker.plan.speed.table import predict_table
from stoker.records import RowsView

STDIN = "-"


def predict_rows(path: str) -> RowsView:
    """Returns the predictions for a table in a file, or from standard input where it is `-`."""
    return predict_table(_read_text(path), load_fit())


def _read_text(path: str) -> str:
    try:
        data = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
    except OSError as error:
        raise WrongUse(f"{path} cannot be read", why=error.strerror or str(error), next_step="name a CSV file") from error
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        raise WrongUse(
            f"line {line}, column {column} of {path}: this is no UTF-8 text",
            why=f"it holds the byte 0x{data[error.start]:02x}", next_step="save it as UTF-8",
        ) from error  # fmt: skip
