"""Which contents a service was asked for, where requests say theirs in `x-stoker-content`: of those that the owner named."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable

from stoker.gateway.exchange import Request

HEADER = b"x-stoker-content"
UNSAID = ""  # nothing was said, or a word that the owner did not name: a client must not make series of its own


class Contents:
    """Remembers what each service is asked for now, and when it last was asked for each content."""

    def __init__(self, known: Iterable[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._known = {one.encode(): one for one in known}
        self._clock = clock
        self._running: dict[str, Counter[str]] = {}
        self._ended_at: dict[str, dict[str, float]] = {}

    def begin(self, service: str, request: Request) -> str | None:
        """Takes a request that is sent to a service; returns what `end` has to be told, None where no content has a name."""
        if not self._known:
            return None
        content = self._known.get(request.header(HEADER) or b"", UNSAID)
        self._running.setdefault(service, Counter())[content] += 1
        return content

    def end(self, service: str, content: str | None) -> None:
        """Takes the end of a request that was begun."""
        if content is None:
            return
        self._running[service][content] -= 1
        self._ended_at.setdefault(service, {})[content] = self._clock()

    def only(self, service: str, since_s: float) -> str | None:
        """Returns the content of everything that ran on a service since then; None where it was several, none, or unsaid."""
        found = {content for content, count in self._running.get(service, {}).items() if count > 0}
        found |= {content for content, at in self._ended_at.get(service, {}).items() if at >= since_s}
        return found.pop() or None if len(found) == 1 else None

    def forget(self, service: str) -> None:
        """Forgets a service that is no more."""
        self._running.pop(service, None)
        self._ended_at.pop(service, None)
