"""Counts by labels, for Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily
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
