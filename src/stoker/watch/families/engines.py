"""What engines tell, under names that are the same for all of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from stoker.watch.engine_page import EnginePage
from stoker.watch.engine_series import ENGINE_SERIES
from stoker.watch.page_check import PROBLEMS

OF_ENGINE = ["service", "engine"]


class EngineSeen(NamedTuple):
    """One engine's page, None where none came, and what is wrong with it."""

    service: str
    engine: str
    page: EnginePage | None
    problems: frozenset[str]


def engine_families(seen: Iterable[EngineSeen]) -> Iterator[Metric]:
    """Yields what engines tell, under the names that are the same for all of them."""
    engines = tuple(seen)
    up = GaugeMetricFamily("stoker_engine_up", "1 where a READY engine's metrics can be read, else 0.", labels=OF_ENGINE)
    wrong = GaugeMetricFamily(
        "stoker_engine_metrics_problem", f"1 for each of {', '.join(PROBLEMS)} that an engine's metrics show.",
        labels=[*OF_ENGINE, "problem"],
    )  # fmt: skip
    for one in engines:
        up.add_metric([one.service, one.engine], float(one.page is not None and bool(one.page.values)))
        for problem in PROBLEMS:
            wrong.add_metric([one.service, one.engine, problem], float(problem in one.problems))
    yield up
    yield wrong
    for series in ENGINE_SERIES:
        if series.kind == "histogram":
            yield _histogram(series.name, series.what, engines)
        else:
            kind = CounterMetricFamily if series.kind == "counter" else GaugeMetricFamily
            family = kind(series.name, series.what, labels=OF_ENGINE)
            for one in engines:
                if one.page is not None and series.name in one.page.values:
                    family.add_metric([one.service, one.engine], one.page.values[series.name])
            yield family


def _histogram(name: str, what: str, engines: Iterable[EngineSeen]) -> Metric:
    family = HistogramMetricFamily(name, what, labels=OF_ENGINE)
    for one in engines:
        found = one.page.histograms.get(name) if one.page is not None else None
        if found is not None:
            buckets = [(_say_bound(bound), count) for bound, count in found.buckets]
            family.add_metric([one.service, one.engine], buckets, found.total)
    return family


def _say_bound(bound: float) -> str:
    return "+Inf" if bound == math.inf else repr(bound)
