"""Whose turn it is: so many requests of a service run at once, so many wait, and nobody waits behind one key alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple


class Places(NamedTuple):
    """How many requests a service runs and lets wait at once, and how many tokens may be in flight; None: no limit."""

    running: int | None = None
    waiting: int | None = 64
    tokens: int | None = None


class Claim(NamedTuple):
    """What a request asks for: `priority` higher goes first; `key_running` limits its key; `tokens` is an estimate."""

    key: str
    priority: int = 0
    key_running: int | None = None
    tokens: int = 0


class Ticket:
    """One request's place: `go` is called when it may run, at once or later."""

    def __init__(self, claim: Claim, go: Callable[[], None]) -> None:
        self.claim = claim
        self.go = go
        self.runs = False


class Line:
    """The requests of one service. Not a coroutine anywhere: turns change hands when a request ends."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self._waiting: list[Ticket] = []
        self._running: Counter[str] = Counter()
        self._tokens = 0
        self._hands_on = False

    @property
    def running(self) -> int:
        """How many requests run."""
        return self._running.total()

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._waiting)

    @property
    def tokens(self) -> int:
        """About how many tokens are in flight or wait, and one more for each request."""
        return self._tokens + self.running + sum(1 + one.claim.tokens for one in self._waiting)

    def enter(self, ticket: Ticket) -> bool:
        """Lets a request run or wait; returns False where no more may wait."""
        if self._may_run(ticket.claim) and not self._is_before(ticket.claim):
            self._run(ticket)
            return True
        if self.places.waiting is not None and self.waiting >= self.places.waiting:
            return False
        self._waiting.append(ticket)
        return True

    def leave(self, ticket: Ticket) -> None:
        """Ends a request's place, whether it ran or waited; the next ones run."""
        if ticket.runs:
            ticket.runs = False
            self._running[ticket.claim.key] -= 1
            self._tokens -= ticket.claim.tokens
        elif ticket in self._waiting:
            self._waiting.remove(ticket)
        if self._waiting and not self._hands_on:
            self._hand_on()

    def _hand_on(self) -> None:
        # One whose turn has come may end at once, as all do whose service stopped: a loop, since no stack would hold them.
        self._hands_on = True
        try:
            while (following := self._next()) is not None:
                self._waiting.remove(following)
                self._run(following)
        finally:
            self._hands_on = False

    def why_waiting(self, claim: Claim) -> str:
        """Says which limit is reached, for the answer to one who may not wait."""
        if claim.key_running is not None and self._running[claim.key] >= claim.key_running:
            return f"{self._running[claim.key]} requests of this key run, which is its limit"
        said = f"{self.running} requests run and {self.waiting} wait"
        return said if not self._tokens else f"{said}, with about {self._tokens} tokens in flight"

    def _may_run(self, claim: Claim) -> bool:
        places = self.places
        if places.running is not None and self.running >= places.running:
            return False
        if claim.key_running is not None and self._running[claim.key] >= claim.key_running:
            return False
        return places.tokens is None or not self.running or self._tokens + claim.tokens <= places.tokens

    def _is_before(self, claim: Claim) -> bool:
        """Tells whether somebody who could run, or who waits for tokens that this one would take, came first."""
        return bool(self._waiting) and any(
            one.claim.priority >= claim.priority and not self._is_held_by_key(one.claim) for one in self._waiting
        )

    def _is_held_by_key(self, claim: Claim) -> bool:
        return claim.key_running is not None and self._running[claim.key] >= claim.key_running

    def _next(self) -> Ticket | None:
        """Chooses by priority, then the key of which the fewest run, then who came first; a large one is not passed over."""
        able = [one for one in self._waiting if not self._is_held_by_key(one.claim)]
        best = max(able, key=lambda one: (one.claim.priority, -self._running[one.claim.key]), default=None)
        return best if best is not None and self._may_run(best.claim) else None

    def _run(self, ticket: Ticket) -> None:
        ticket.runs = True
        self._running[ticket.claim.key] += 1
        self._tokens += ticket.claim.tokens
        ticket.go()
