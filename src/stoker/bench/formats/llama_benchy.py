"""llama-benchy's results (0.4.0): what its cells and metrics are in our terms. Times are milliseconds there."""

from __future__ import annotations

import re
from typing import NamedTuple

from stoker.records import BenchCell, BenchFigure, BenchLoad, BenchRun, BenchSubject, CellResult, FigurePer

TOOL = "llama-benchy"
BOOK = "book"
CONTEXT_LOAD = "book (load of the context)"  # the first half of a cell under --enable-prefix-caching
MS = 1000  # in a second
TEST = re.compile(
    r"(?:(?P<context>ctx_)(?P<phase>pp|tg)|pp(?P<pp>\d+)|tg(?P<tg>\d+))(?: @ d(?P<depth>\d+))?(?: \(c(?P<load>\d+)\))?"
)


class Kind(NamedTuple):
    """What a metric is in our terms: the figure's name, what has one value of it, and how many of its units ours is."""

    figure: str
    per: FigurePer
    unit: int = 1


METRICS = {
    "pp_throughput": Kind("total_prefill_tps", "repeat"),
    "pp_req_throughput": Kind("first_chunk_prefill_tps", "request"),
    "tg_throughput": Kind("total_decode_tps", "repeat"),
    "tg_req_throughput": Kind("request_decode_tps", "request"),
    "peak_throughput": Kind("total_peak_tps", "repeat"),
    "peak_req_throughput": Kind("request_peak_tps", "request"),
    "ttfr": Kind("first_chunk_s", "request", MS),
    "est_ppt": Kind("est_prefill_s", "request", MS),
    "e2e_ttft": Kind("ttft_s", "request", MS),
}
# With one request at a time the total prefill rate is another quantity there: each request's, less the latency.
PP_TOTAL, PP_REQUEST = "pp_throughput", "pp_req_throughput"


def metric_names(concurrency: int) -> list[str]:
    """Returns the metrics that tell something of their own at a concurrency."""
    return [name for name in METRICS if concurrency > 1 or name != PP_TOTAL]


def make_cell(prompt: int, new: int | None, depth: int, concurrency: int, is_context: bool, is_cached: bool) -> BenchCell:
    """Returns the cell: `is_context` where the depth itself was loaded, `is_cached` where it had been loaded before."""
    load = BenchLoad(concurrency=concurrency)
    if is_context:
        return BenchCell(depth, new, 0, load, CONTEXT_LOAD, shares_prefix=True)
    return BenchCell(prompt, new, depth, load, BOOK, shares_prefix=is_cached)


def make_result(cell: BenchCell, figures: list[BenchFigure]) -> CellResult:
    """Returns a cell's result: how many requests were asked and failed is not in these files."""
    return CellResult(cell, tuple(figures), (f"{TOOL}'s count",), None, None)


def make_run(
    model: str, cells: list[CellResult], version: str, began_at: float | None, words: tuple[str, ...], note: str
) -> BenchRun:
    """Returns the run."""
    return BenchRun(None, TOOL, version, began_at, None, None, True, BenchSubject(None, model), tuple(cells), words, note)
