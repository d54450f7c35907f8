"""Reads llama-benchy's JSON."""

from __future__ import annotations

import calendar
import math
import time
from typing import Any, Literal

from stoker.bench.formats.figures import deviation, figure_of, mean
from stoker.bench.formats.llama_benchy import METRICS, PP_REQUEST, PP_TOTAL, make_cell, make_result, make_run, metric_names
from stoker.bench.formats.strict import Amount, Count, Foreign, Positive, not_kept, read_as, refusal, unknown_fields
from stoker.records import BenchFigure, BenchRun, CellResult

TIME = "%Y-%m-%d %H:%M:%SZ"
SERIES = ("throughput_over_time", "requests_throughput_over_time")
CLOSE = 1e-6  # of a mean to the mean of its values


class Metric(Foreign, frozen=True):
    """Values with their mean and deviation."""

    mean: Amount
    std: Amount
    values: tuple[Amount, ...]


class Benchmark(Foreign, frozen=True):
    """One cell, with what it asked, not what was measured of it."""

    concurrency: Positive
    context_size: Count
    prompt_size: Count
    response_size: Count
    is_context_prefill_phase: bool
    pp_throughput: Metric | None
    pp_req_throughput: Metric | None
    tg_throughput: Metric | None
    tg_req_throughput: Metric | None
    peak_throughput: Metric | None
    peak_req_throughput: Metric | None
    ttfr: Metric | None
    est_ppt: Metric | None
    e2e_ttft: Metric | None


class Report(Foreign, frozen=True):
    """The file."""

    version: str
    timestamp: str
    latency_mode: Literal["api", "generation", "none"]
    latency_ms: Amount
    model: str
    prefix_caching_enabled: bool
    max_concurrency: Positive
    benchmarks: tuple[Benchmark, ...]


def read_report(raw: dict[str, Any], name: str) -> BenchRun:
    """Returns the run of a file; raises WrongUse with the place of what is wrong."""
    report = read_as(raw, Report, name)
    cells = [_read_cell(one, report, name, f"$.benchmarks[{place}]") for place, one in enumerate(report.benchmarks)]
    words = ("--latency-mode", report.latency_mode, *(("--enable-prefix-caching",) * report.prefix_caching_enabled))
    left = unknown_fields(raw, Report.__struct_fields__)
    for one in raw["benchmarks"]:
        left += [field for field in unknown_fields(one, Benchmark.__struct_fields__) if one[field] is not None]
    return make_run(report.model, cells, report.version, _read_time(report.timestamp, name), words, not_kept(left))


def _read_cell(one: Benchmark, report: Report, name: str, place: str) -> CellResult:
    if one.concurrency == 1 and one.pp_throughput != one.pp_req_throughput:
        raise refusal(
            name, f"{place}.{PP_TOTAL}", f"with one request at a time it is the same as {PP_REQUEST}, and here it is not"
        )
    cell = make_cell(
        one.prompt_size, one.response_size, one.context_size, one.concurrency, one.is_context_prefill_phase,
        report.prefix_caching_enabled and one.context_size > 0,
    )  # fmt: skip
    read = (_read_metric(metric, one, name, place) for metric in metric_names(one.concurrency))
    return make_result(cell, [figure for figure in read if figure is not None])


def _read_metric(metric: str, one: Benchmark, name: str, place: str) -> BenchFigure | None:
    found: Metric | None = getattr(one, metric)
    if found is None:
        return None
    where = f"{place}.{metric}"
    if not found.values:
        raise refusal(name, f"{where}.values", "it has a mean and no values")
    for told, counted in ((found.mean, mean(found.values)), (found.std, deviation(found.values))):
        if not math.isclose(told, counted, rel_tol=CLOSE, abs_tol=CLOSE * max(found.values)):
            raise refusal(name, where, f"{told:g} does not follow from its values: they give {counted:g}")
    kind = METRICS[metric]
    return figure_of(kind.figure, kind.per, [value / kind.unit for value in found.values])


def _read_time(text: str, name: str) -> float:
    try:
        return float(calendar.timegm(time.strptime(text, TIME)))
    except ValueError:
        raise refusal(name, "$.timestamp", f"{text!r} is not a time like 2026-11-22 16:16:21Z") from None
