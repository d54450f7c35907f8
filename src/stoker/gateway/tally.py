"""Counts by labels, for Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector


class Tally(Collector):
    """A counter of the event loop's alone; prometheus_client's own takes a lock and several calls, five times a request."""

    def __init__(self, name: str, what: str, labels: tuple[str, ...], registry: CollectorRegistry) -> None:
        self._name, self._what, self._labels = name, what, labels
        self._counts: Counter[tuple[str, ...]] = Counter()
        registry.register(self)

    def add(self, labels: tuple[str, ...], amount: int = 1) -> None:
        """Counts."""
        self._counts[labels] += amount

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Tells all counts."""
        family = CounterMetricFamily(self._name, self._what, labels=self._labels)
        for labels, count in self._counts.items():
            family.add_metric(labels, count)
        yield family


class Times(Collector):
    """A histogram of the event loop's alone, by one label."""

    def __init__(self, name: str, what: str, label: str, bounds_s: tuple[float, ...], registry: CollectorRegistry) -> None:
        self._name, self._what, self._label, self._bounds_s = name, what, label, bounds_s
        self._counts: dict[str, list[int]] = {}
        self._sums_s: defaultdict[str, float] = defaultdict(float)
        registry.register(self)

    def add(self, label: str, seconds: float) -> None:
        """Counts one time."""
        counts = self._counts.get(label)
        if counts is None:
            counts = self._counts[label] = [0] * (len(self._bounds_s) + 1)
        counts[bisect_left(self._bounds_s, seconds)] += 1
        self._sums_s[label] += seconds

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """Tells all counts, each bound with what lies below it."""
        family = HistogramMetricFamily(self._name, self._what, labels=[self._label])
        bounds = [*(repr(float(bound)) for bound in self._bounds_s), "+Inf"]
        for label, counts in self._counts.items():
            family.add_metric([label], list(zip(bounds, accumulate(counts), strict=True)), self._sums_s[label])
        yield family
