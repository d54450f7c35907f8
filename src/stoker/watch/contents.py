"""What drafts are worth by content, from stretches in which everything that ran was of one. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from stoker.records.watching import ContentView
from stoker.watch.samples import Growth
from stoker.watch.slots import NOTHING, Slot, added

WINDOW_S = 900.0
LEAST_DRAFTED = 60  # as in the record `stoker:accept_rate:15m`


class ContentRates:
    """Keeps the last fifteen busy minutes of each content of a service, and sums since the daemon began."""

    def __init__(self) -> None:
        self._recent: dict[str, deque[tuple[float, Slot]]] = {}
        self._totals: dict[str, Slot] = {}

    def take(self, content: str, growth: Growth) -> None:
        """Takes a stretch in which nothing else ran; an idle one says nothing."""
        if not growth.drafted or growth.accepted is None:
            return
        seen = Slot(growth.drafted, growth.accepted, growth.steps or 0, growth.prompted or 0, growth.generated or 0)
        self._totals[content] = self._totals.get(content, NOTHING) + seen
        recent = self._recent.setdefault(content, deque())
        recent.append((growth.took_s, seen))
        while sum(took_s for took_s, _ in recent) - recent[0][0] >= WINDOW_S:
            recent.popleft()

    @property
    def totals(self) -> Mapping[str, Slot]:
        """The sums by content."""
        return self._totals

    def views(self) -> tuple[ContentView, ...]:
        """Returns each content's ratios of sums, by name; of fewer drafts than say something, none."""
        sums = ((content, added(seen for _, seen in recent)) for content, recent in sorted(self._recent.items()))
        return tuple(_view(content, one) for content, one in sums if one.drafted >= LEAST_DRAFTED)


def _view(content: str, seen: Slot) -> ContentView:
    length = 1 + seen.accepted / seen.steps if seen.steps else None
    return ContentView(content, seen.accepted / seen.drafted, length, seen.drafted)
