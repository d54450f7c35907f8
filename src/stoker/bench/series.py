"""Cuts a long repeat into stretches, so that one sees whether it stayed as it began. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from stoker.bench.figures import itl_token_s
from stoker.bench.intervals import median_of
from stoker.records import BenchRepeat, RequestSeen, SeriesPoint

POINTS = 60
LEAST_SPAN_S = 1.0


def make_series(repeat: BenchRepeat, whole_s: float) -> tuple[SeriesPoint, ...]:
    """Returns a minute's worth of points or fewer; tokens count where they came, requests where they ended."""
    span_s = max(LEAST_SPAN_S, whole_s / POINTS)
    last_s = max((_end_s(one) for one in repeat.requests), default=0.0)
    return tuple(_point(repeat.requests, number * span_s, span_s) for number in range(int(last_s / span_s) + 1))


def _end_s(one: RequestSeen) -> float:
    return one.sent_at_s + (one.done_s or one.last_token_s or 0.0)


def _point(requests: Sequence[RequestSeen], at_s: float, span_s: float) -> SeriesPoint:
    ended = [one for one in requests if at_s <= _end_s(one) < at_s + span_s]
    whole = [one for one in ended if not one.error]
    tokens = sum(
        write.tokens or 0 for one in requests for write in one.writes if at_s <= one.sent_at_s + write.at_s < at_s + span_s
    )
    ttft = [one.ttft_s for one in whole if one.ttft_s is not None]
    each = [value for one in whole if (value := itl_token_s(one)) is not None]
    return SeriesPoint(
        at_s=at_s, span_s=span_s, answered=len(whole), failed=len(ended) - len(whole), total_tps=tokens / span_s,
        ttft_s=median_of(ttft) if ttft else None, itl_token_s=median_of(each) if each else None,
    )  # fmt: skip
