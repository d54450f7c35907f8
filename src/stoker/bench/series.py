"""Cuts a long repeat into stretches, so that one sees whether it stayed as it began. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from stoker.bench.counter_watch import Counted
from stoker.bench.figures import itl_token_s
from stoker.bench.intervals import median_of
from stoker.bench.machine import Sample
from stoker.bench.speculation import speculation_between
from stoker.records import BenchRepeat, RequestSeen, SeriesPoint

POINTS = 60
LEAST_SPAN_S = 1.0


class Beside(NamedTuple):
    """What was seen beside a repeat that began at `began_s`, on the clock of `time.perf_counter`."""

    began_s: float
    machine: Sequence[Sample] = ()
    counted: Sequence[Counted] = ()


def span_of(whole_s: float) -> float:
    """Returns how long each stretch is."""
    return max(LEAST_SPAN_S, whole_s / POINTS)


def make_series(repeat: BenchRepeat, whole_s: float, beside: Beside) -> tuple[SeriesPoint, ...]:
    """Returns a minute's worth of points or fewer; tokens count where they came, requests where they ended."""
    span_s = span_of(whole_s)
    last_s = max((_end_s(one) for one in repeat.requests), default=0.0)
    return tuple(_point(repeat.requests, beside, number * span_s, span_s) for number in range(int(last_s / span_s) + 1))


def _end_s(one: RequestSeen) -> float:
    return one.sent_at_s + (one.done_s or one.last_token_s or 0.0)


def _point(requests: Sequence[RequestSeen], beside: Beside, at_s: float, span_s: float) -> SeriesPoint:
    ended = [one for one in requests if at_s <= _end_s(one) < at_s + span_s]
    whole = [one for one in ended if not one.error]
    begin_s = beside.began_s + at_s
    samples = [one for one in beside.machine if begin_s <= one.at_s < begin_s + span_s]
    return SeriesPoint(
        at_s=at_s, span_s=span_s, answered=len(whole), failed=len(ended) - len(whole),
        total_tps=_tokens_between(requests, at_s, at_s + span_s) / span_s,
        ttft_s=_median_known(one.ttft_s for one in whole), itl_token_s=_median_known(map(itl_token_s, whole)),
        accept_length=_accept_length(beside.counted, begin_s, begin_s + span_s),
        available_bytes=min((one.available_bytes for one in samples if one.available_bytes is not None), default=None),
        temperature_c=max((heat for one in samples for heat in _heats(one)), default=None),
    )  # fmt: skip


def _tokens_between(requests: Sequence[RequestSeen], begin_s: float, end_s: float) -> int:
    writes = (write for one in requests for write in one.writes if begin_s <= one.sent_at_s + write.at_s < end_s)
    return sum(write.tokens or 0 for write in writes)


def _median_known(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median_of(known) if known else None


def _accept_length(counted: Sequence[Counted], begin_s: float, end_s: float) -> float | None:
    """Returns the tokens a verify step between the two looks that are nearest to the stretch's ends."""
    if not counted:
        return None
    before, after = (min(counted, key=lambda one: abs(one.at_s - wanted)) for wanted in (begin_s, end_s))
    seen = speculation_between(before.counters, after.counters)
    return seen.accept_length if seen else None


def _heats(sample: Sample) -> list[float]:
    """Returns the GPUs' temperatures, or the machine's where it has none."""
    gpus = [float(gpu.temperature_c) for gpu in sample.gpus if gpu.temperature_c is not None]
    return gpus or ([] if sample.heat_c is None else [sample.heat_c])
