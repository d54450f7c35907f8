"""Makes figures of what was seen, each by its definition in `records.FIGURES`. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from stoker.bench.goodput import is_good
from stoker.bench.intervals import interval_of, median_of, spread_of
from stoker.records import BenchFigure, BenchRepeat, BenchSlo, FigurePer, RequestSeen

WINDOW_S = 1.0
Whole = Sequence[RequestSeen]


def answered(repeat: BenchRepeat) -> list[RequestSeen]:
    """Returns the requests of a repeat that were answered whole."""
    return [one for one in repeat.requests if not one.error]


def figures_of(repeats: Sequence[BenchRepeat], slo: BenchSlo | None = None) -> tuple[BenchFigure, ...]:
    """Returns every figure that these repeats allow; a request that failed counts in none but goodput's share."""
    found = []
    for name, of_request in OF_REQUEST.items():
        groups = [_known(of_request(one) for one in answered(repeat)) for repeat in repeats]
        found.append(make_figure(name, "request", groups))
    for name, of_repeat in OF_REPEAT.items():
        found.append(make_figure(name, "repeat", [_known([of_repeat(repeat)]) for repeat in repeats]))
    if slo is not None:
        found.append(make_figure("goodput_per_s", "repeat", [_known([_goodput_per_s(one, slo)]) for one in repeats]))
        found.append(make_figure("goodput_share", "repeat", [_known([_goodput_share(one, slo)]) for one in repeats]))
    return tuple(figure for figure in found if figure is not None)


def make_figure(name: str, per: FigurePer, groups: Sequence[Sequence[float]]) -> BenchFigure | None:
    """Returns a figure of values grouped by repeats; its interval is over the repeats' medians, the independent ones."""
    values = [value for group in groups for value in group]
    if not values:
        return None
    middles = [median_of(group) for group in groups if group]
    low, high = interval_of(middles) or (None, None)
    return BenchFigure(name, per, tuple(values), median_of(values), spread_of(values), low, high)


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


# One request.


def later_tokens(one: RequestSeen) -> int:
    """Returns the tokens that came after the first write."""
    return (one.output_tokens or 0) - (one.first_write_tokens or 0)


def itl_token_s(one: RequestSeen) -> float | None:
    """Returns the time per token after the first write; None where all came at once."""
    if one.ttft_s is None or one.last_token_s is None or one.last_token_s <= one.ttft_s or later_tokens(one) < 1:
        return None
    return (one.last_token_s - one.ttft_s) / later_tokens(one)


def _itl_chunk_s(one: RequestSeen) -> float | None:
    if one.ttft_s is None or one.last_token_s is None or one.chunks <= 1:
        return None
    return (one.last_token_s - one.ttft_s) / (one.chunks - 1)


def _decode_tps(one: RequestSeen) -> float | None:
    each_s = itl_token_s(one)
    return 1 / each_s if each_s else None


def _e2e_tps(one: RequestSeen) -> float | None:
    return one.output_tokens / one.last_token_s if one.output_tokens and one.last_token_s else None


def _prefill_tps(one: RequestSeen) -> float | None:
    fresh = fresh_tokens(one)
    return fresh / one.ttft_s if fresh and one.ttft_s else None


def fresh_tokens(one: RequestSeen) -> int | None:
    """Returns the prompt's tokens that had to be computed; None where nobody tells.

    Of a first turn that begins as no other does, nothing was cached even where the server does not say so.
    """
    if one.prompt_tokens is None or (one.cached_tokens is None and one.turn):
        return None
    return one.prompt_tokens - (one.cached_tokens or 0)


def peak_tps(writes: Iterable[tuple[float, int]]) -> float | None:
    """Returns the most tokens per second within any window of a second; of all where they took less."""
    ordered = sorted(writes)
    if len(ordered) <= 1:
        return None
    whole_s = ordered[-1][0] - ordered[0][0]
    if whole_s < WINDOW_S:
        return sum(tokens for _, tokens in ordered[1:]) / whole_s if whole_s else None
    most = held = begin = 0
    for at_s, tokens in ordered:
        held += tokens
        while ordered[begin][0] <= at_s - WINDOW_S:
            held -= ordered[begin][1]
            begin += 1
        most = max(most, held)
    return most / WINDOW_S


def _peak_of_request(one: RequestSeen) -> float | None:
    return peak_tps((write.at_s, write.tokens or 0) for write in one.writes)


# One repeat.


def _total_decode(repeat: BenchRepeat) -> float | None:
    whole = answered(repeat)
    span_s = _last_s(whole) - min((one.sent_at_s + (one.ttft_s or 0.0) for one in whole), default=0.0)
    later = sum(later_tokens(one) for one in whole)
    return later / span_s if later > 0 and span_s > 0 else None


def _total_e2e(repeat: BenchRepeat) -> float | None:
    whole = answered(repeat)
    return sum(one.output_tokens or 0 for one in whole) / span if (span := _span_s(whole)) else None


def _total_prefill(repeat: BenchRepeat) -> float | None:
    whole = answered(repeat)
    fresh = [fresh_tokens(one) for one in whole]
    if not whole or None in fresh:
        return None
    span_s = max(one.sent_at_s + (one.ttft_s or 0.0) for one in whole) - min(one.sent_at_s for one in whole)
    return sum(_known(fresh)) / span_s if span_s else None


def _requests_per_s(repeat: BenchRepeat) -> float | None:
    whole = answered(repeat)
    return len(whole) / span if (span := _span_s(whole)) else None


def _total_peak(repeat: BenchRepeat) -> float | None:
    return peak_tps((one.sent_at_s + write.at_s, write.tokens or 0) for one in answered(repeat) for write in one.writes)


def _last_s(whole: Whole) -> float:
    return max((one.sent_at_s + (one.last_token_s or 0.0) for one in whole), default=0.0)


def _span_s(whole: Whole) -> float:
    """Returns the time from the first request to the last token."""
    return _last_s(whole) - min((one.sent_at_s for one in whole), default=0.0)


def _goodput_per_s(repeat: BenchRepeat, slo: BenchSlo) -> float | None:
    good = sum(is_good(one, slo, itl_token_s(one)) for one in repeat.requests)
    return good / span if (span := _span_s(answered(repeat))) else None


def _goodput_share(repeat: BenchRepeat, slo: BenchSlo) -> float | None:
    good = sum(is_good(one, slo, itl_token_s(one)) for one in repeat.requests)
    return good / len(repeat.requests) if repeat.requests else None


OF_REQUEST: Mapping[str, Callable[[RequestSeen], float | None]] = {
    "ttft_s": lambda one: one.ttft_s,
    "first_chunk_s": lambda one: one.first_chunk_s,
    "itl_token_s": itl_token_s,
    "itl_chunk_s": _itl_chunk_s,
    "request_decode_tps": _decode_tps,
    "request_e2e_tps": _e2e_tps,
    "request_peak_tps": _peak_of_request,
    "prefill_tps": _prefill_tps,
    "e2e_s": lambda one: one.last_token_s,
}
OF_REPEAT: Mapping[str, Callable[[BenchRepeat], float | None]] = {
    "total_decode_tps": _total_decode,
    "total_e2e_tps": _total_e2e,
    "total_peak_tps": _total_peak,
    "total_prefill_tps": _total_prefill,
    "requests_per_s": _requests_per_s,
    "accept_rate": lambda repeat: repeat.speculation.accept_rate if repeat.speculation else None,
    "accept_length": lambda repeat: repeat.speculation.accept_length if repeat.speculation else None,
}
