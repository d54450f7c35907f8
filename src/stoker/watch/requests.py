"""Judges the requests of a service by how they ended: errors, departures, and how long the first tokens took. Pure."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from statistics import median, quantiles
from typing import NamedTuple

from stoker.records import UsageRecord
from stoker.watch.table import Looked, threshold

WINDOW_S = 900.0
RECENT_S = 600.0
MOST = 2000
LEAST_REQUESTS = 10
USUAL_STEP_S, USUAL_LOOKS, LEAST_LOOKS = 300.0, 288, 12
LEAST_SLOW_TTFT_S = 5.0
LEAST_TOKENS = 8  # the time of a shorter answer is that of its first token
LEAST_REST_S = 0.01  # what was over sooner after its first byte came all at once: a reply that was no stream


class Ended(NamedTuple):
    """One request that ended, and when; seconds a token without the first.

    `is_stream`: its tokens came one by one; `left`: its client did before it was whole.
    """

    at_s: float
    status: int | None
    ttft_s: float | None
    token_s: float | None
    is_stream: bool = False
    left: bool = False


def ended(at_s: float, record: UsageRecord, left: bool = False) -> Ended:
    """Returns what is judged of a request."""
    tokens, ttft_s = record.completion_tokens or 0, record.ttft_s
    token_s = (record.duration_s - ttft_s) / (tokens - 1) if ttft_s is not None and tokens >= LEAST_TOKENS else None
    is_stream = ttft_s is not None and record.duration_s - ttft_s >= LEAST_REST_S
    return Ended(at_s, record.status, ttft_s, token_s, is_stream, left)


class Timed(NamedTuple):
    """The times of some streams: how many, the sum and the most of their TTFT, and the sum of the times a token of those
    that said how many tokens they had.
    """

    streams: int
    ttft_total_s: float
    ttft_most_s: float
    counted_streams: int
    token_total_s: float


def time_streams(requests: Iterable[Ended]) -> Timed | None:
    """Returns the times of the streams among some requests; None where there are none."""
    streams = [one for one in requests if one.is_stream]
    first = [one.ttft_s for one in streams if one.ttft_s is not None]
    later = [one.token_s for one in streams if one.token_s is not None]
    return Timed(len(first), sum(first), max(first), len(later), sum(later)) if first else None


class Usual:
    """The median of a figure's looks over a day of them."""

    def __init__(self) -> None:
        self._looks: deque[float] = deque(maxlen=USUAL_LOOKS)
        self._noted_s = float("-inf")

    def exceeds(self, at_s: float, value: float, times: float) -> float | None:
        """Returns what is usual where a value is so many times as much; else notes the value, now and then."""
        usual = median(self._looks) if len(self._looks) >= LEAST_LOOKS else None
        if usual is not None and value > times * usual:
            return usual
        if at_s - self._noted_s >= USUAL_STEP_S:
            self._noted_s = at_s
            self._looks.append(value)
        return None

    def keep(self) -> tuple[float, ...]:
        """Returns the looks, the oldest first."""
        return tuple(self._looks)

    def restore(self, kept: Sequence[float]) -> None:
        """Takes looks that were kept."""
        self._looks.extend(one for one in kept if math.isfinite(one) and one >= 0)


class RequestCheck:
    """Keeps a quarter of an hour of requests, at most some thousand."""

    def __init__(self, service: str) -> None:
        self._service = service
        self._ended: deque[Ended] = deque(maxlen=MOST)
        self._ttft, self._token = Usual(), Usual()

    def take(self, one: Ended) -> None:
        """Takes a request that ended."""
        self._ended.append(one)

    def keep(self) -> list[tuple[float, ...]]:
        """Returns what is usual: of first tokens, and of the others."""
        return [self._ttft.keep(), self._token.keep()]

    def restore(self, kept: Sequence[Sequence[float]]) -> None:
        """Takes what was kept."""
        for usual, looks in zip((self._ttft, self._token), kept, strict=False):
            usual.restore(looks)

    def counted(self, at_s: float, window_s: float) -> tuple[int, int]:
        """Returns how many requests ended within a window, and how many of them failed."""
        recent = self._recent(at_s, window_s)
        return len(recent), sum(_failed(one) for one in recent)

    def timed(self, at_s: float, window_s: float) -> Timed | None:
        """Returns the times of the streams that ended within a window."""
        return time_streams(self._recent(at_s, window_s))

    def look(self, at_s: float) -> Looked:
        """Returns what is wrong with the requests of the last minutes."""
        while self._ended and self._ended[0].at_s < at_s - WINDOW_S:
            self._ended.popleft()
        recent = self._recent(at_s, RECENT_S)
        failed = sum(_failed(one) for one in recent)
        share = failed / len(recent) if recent else 0.0
        name = self._service
        return {
            ("errors", name): f"{failed} of {len(recent)} requests failed" if share > threshold("errors") else None,
            ("client-errors", name): self._judge_share("client-errors", "were refused as wrong", _was_refused),
            ("requests-aborted", name): self._judge_share("requests-aborted", "were given up by their client", _was_left),
            ("ttft-slow", name): self._judge_ttft(at_s, recent),
            ("decode-slow", name): self._judge_tokens(at_s, recent),
        }

    def _recent(self, at_s: float, window_s: float) -> list[Ended]:
        return [one for one in self._ended if one.at_s >= at_s - window_s]

    def _judge_share(self, alert: str, what: str, is_meant: Callable[[Ended], bool]) -> str | None:
        count, of = sum(map(is_meant, self._ended)), len(self._ended)
        if of <= LEAST_REQUESTS or count <= threshold(alert) * of:
            return None
        return f"{count} of {of} requests {what} within a quarter of an hour"

    def _judge_ttft(self, at_s: float, recent: list[Ended]) -> str | None:
        slow_s = _slowest([one.ttft_s for one in recent if one.is_stream and one.ttft_s is not None])
        usual_s = None if slow_s is None else self._ttft.exceeds(at_s, slow_s, threshold("ttft-slow"))
        if slow_s is None or usual_s is None or slow_s <= LEAST_SLOW_TTFT_S:
            return None
        return f"one of twenty waits {slow_s:.1f} s for its first token; {usual_s:.1f} s are usual"

    def _judge_tokens(self, at_s: float, recent: list[Ended]) -> str | None:
        slow_s = _slowest([one.token_s for one in recent if one.is_stream and one.token_s is not None])
        usual_s = None if slow_s is None else self._token.exceeds(at_s, slow_s, threshold("decode-slow"))
        if slow_s is None or usual_s is None:
            return None
        return f"one of twenty answers takes {slow_s * 1000:.0f} ms a token; {usual_s * 1000:.0f} ms are usual"


def _failed(one: Ended) -> bool:
    return one.status is not None and 500 <= one.status < 600


def _was_refused(one: Ended) -> bool:
    return one.status is not None and 400 <= one.status < 500


def _was_left(one: Ended) -> bool:
    return one.left


def _slowest(values: list[float]) -> float | None:
    """Returns what 95 of 100 stay below; None of a handful."""
    return quantiles(values, n=20)[-1] if len(values) >= LEAST_REQUESTS else None
