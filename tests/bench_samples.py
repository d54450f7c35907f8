"""Runs of benchmarks with everything filled in, from values that a test chooses."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from stoker.records import (
    BenchCell,
    BenchFigure,
    BenchLoad,
    BenchRepeat,
    BenchRun,
    BenchSubject,
    CellResult,
    FigurePer,
    RequestSeen,
    TokensRead,
)


def make_cell(prompt: int = 512, new: int | None = 32, depth: int = 0, concurrency: int = 1, **changes: Any) -> BenchCell:
    """Returns a closed load."""
    facts: dict[str, Any] = {"load": BenchLoad(concurrency=concurrency), "content": "code"}
    return BenchCell(prompt, new, depth, **{**facts, **changes})


def make_figure(name: str, values: Sequence[float], per: FigurePer = "repeat") -> BenchFigure:
    """Returns a figure of values."""
    return BenchFigure(name, per, tuple(values), statistics.median(values), None, None, None)


def make_request(ttft_s: float = 0.2, tokens: int = 32, step_s: float = 0.02, **changes: Any) -> RequestSeen:
    """Returns a request whose tokens came one by one."""
    writes = tuple(TokensRead(round(ttft_s + step_s * number, 6), 1, 1) for number in range(tokens))
    facts: dict[str, Any] = {
        "sent_at_s": 0.0, "first_chunk_s": ttft_s, "ttft_s": ttft_s, "last_token_s": writes[-1].at_s,
        "done_s": writes[-1].at_s + 0.001, "prompt_tokens": 512, "cached_tokens": 0, "output_tokens": tokens,
        "first_write_tokens": 1, "chunks": tokens, "counted_by": "usage", "writes": writes,
    }  # fmt: skip
    return RequestSeen(**{**facts, **changes})


def make_repeats(count: int = 5, concurrency: int = 1, **changes: Any) -> tuple[BenchRepeat, ...]:
    """Returns repeats of one request for each of the concurrency."""
    return tuple(
        BenchRepeat(1000.0 + number, 1.0, tuple(make_request(**changes) for _ in range(concurrency)))
        for number in range(count)
    )


def make_result(cell: BenchCell | None = None, *figures: BenchFigure, **changes: Any) -> CellResult:
    """Returns what was measured of a cell."""
    facts: dict[str, Any] = {"counted_by": ("usage",), "asked": 5, "failed": 0}
    return CellResult(cell or make_cell(), figures, **{**facts, **changes})


def make_run(*cells: CellResult, **changes: Any) -> BenchRun:
    """Returns a whole run of ours; facts of its subject are named `model`, `engine` and so on."""
    of = {name: changes.pop(name) for name in BenchSubject.__struct_fields__ if name in changes}
    subject = BenchSubject(**{"url": "http://127.0.0.1:8700/v1", "model": "small-1", **of})
    facts: dict[str, Any] = {
        "id": None, "tool": "stoker", "tool_version": "0.1.0", "began_at": 1.79e9, "took_s": 60.0, "seed": 7,
        "is_whole": True,
    }  # fmt: skip
    return BenchRun(subject=subject, cells=cells, **{**facts, **changes})
