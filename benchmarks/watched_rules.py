"""The two that are held beside each other: the rule that was published, and Stoker's own checks and book.

The published rule is `avg_over_time(accept_rate[15m]) < 0.15`, for five minutes, over the engine's gauge. It is given the
gauge under whatever name it has, every 15 s, and none before the engine's first batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from stoker.watch.book import AlertBook, Clock
from stoker.watch.engine import EngineCheck
from stoker.watch.samples import EngineSample
from stoker.watch.table import alerts_by_id


class PublishedRule:
    """The rule of the report, over a gauge that stays when nobody asks."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque()
        self._low_since_s: float | None = None
        self.fires = False

    def look(self, at_s: float, gauge: float | None) -> bool:
        """Tells whether it begins to fire now."""
        if gauge is not None:
            self._seen.append((at_s, gauge))
        while self._seen and self._seen[0][0] <= at_s - 900:
            self._seen.popleft()
        is_low = bool(self._seen) and sum(value for _, value in self._seen) / len(self._seen) < 0.15
        self._low_since_s = (at_s if self._low_since_s is None else self._low_since_s) if is_low else None
        before, self.fires = self.fires, self._low_since_s is not None and at_s - self._low_since_s >= 300
        return self.fires and not before


class Ours:
    """A service's checks and the book that holds what they say."""

    def __init__(self, method: str) -> None:
        self._check, self._book = EngineCheck("llm", method), AlertBook(alerts_by_id())

    def look(self, sample: EngineSample) -> list[str]:
        """Returns the alerts that begin to fire now."""
        self._check.forget_gap(sample.at_s)
        looked = self._check.look(sample, 0.0)
        told = self._book.take(looked, Clock(sample.at_s, sample.at_s), self._check.lasted_s())
        return [alert.id for alert in told if alert.state == "firing"]


@dataclass(frozen=True)
class Seen:
    """When each of the two fired, and the alert's id."""

    ours: tuple[tuple[float, str], ...]
    published: tuple[float, ...]


def watch(looks: Iterable[tuple[EngineSample, float | None]], method: str) -> Seen:
    """Plays one series to both."""
    check, rule = Ours(method), PublishedRule()
    ours: list[tuple[float, str]] = []
    published: list[float] = []
    for sample, gauge in looks:
        ours += [(sample.at_s, alert) for alert in check.look(sample)]
        if rule.look(sample.at_s, gauge):
            published.append(sample.at_s)
    return Seen(tuple(ours), tuple(published))
