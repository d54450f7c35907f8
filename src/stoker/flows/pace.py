"""How each service goes just now, by its engine's counters and the requests that ended; kept only while somebody looks."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from statistics import median

from stoker.records import UsageRecord
from stoker.records.dashboard import Pace
from stoker.records.watching import WatchedService
from stoker.watch.families.engines import EngineSeen
from stoker.watch.reading import Asked, make_sample
from stoker.watch.requests import Ended, ended
from stoker.watch.samples import EngineSample, grown

RATE_S, DRAFTS_S, TIMES_S = 10.0, 60.0, 900.0
MOST_REQUESTS = 200
LEAST_STEPS = 8  # of fewer verify steps a rate says nothing


class Paces:
    """Remembers a minute of counters and a quarter of an hour of requests."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._samples: defaultdict[str, deque[EngineSample]] = defaultdict(deque)
        self._ended: defaultdict[str, deque[Ended]] = defaultdict(lambda: deque(maxlen=MOST_REQUESTS))

    def note(self, record: UsageRecord) -> None:
        """Takes a request that ended; never waits. Times are those of streams alone."""
        one = ended(self._clock(), record)
        if record.service is not None and one.is_stream:
            self._ended[record.service].append(one)

    def take(self, name: str, launch: int, seen: EngineSeen | None, in_flight: int) -> None:
        """Takes what a look told of a service's engine; one that tells nothing is as if it had just begun."""
        now = self._clock()
        if seen is None or seen.page is None:
            self._samples.pop(name, None)
            return
        samples = self._samples[name]
        samples.append(make_sample(seen.page.values, None, Asked(now, launch, in_flight, None), ""))
        while samples[0].at_s < now - DRAFTS_S or samples[0].launch != launch:
            samples.popleft()

    def pace(self, name: str, waiting: int, in_flight: int, watched: WatchedService | None) -> Pace:
        """Returns how a service goes."""
        samples = self._samples.get(name)
        last = samples[-1] if samples else None
        rate = grown(_within(samples or (), RATE_S), last) if last else None
        ttft_s, token_s = self._times(name)
        accept_rate, accept_length = self._drafts(name, watched)
        return Pace(
            running=last.running if last and last.running is not None else in_flight,
            waiting=waiting + ((last.waiting or 0) if last else 0),
            tokens_per_s=None if rate is None or rate.generated is None else rate.generated / rate.took_s,
            prompt_tokens_per_s=None if rate is None or rate.prompted is None else rate.prompted / rate.took_s,
            ttft_s=ttft_s, token_s=token_s, accept_rate=accept_rate, accept_length=accept_length,
            band=watched.band if watched else None,
        )  # fmt: skip

    def _times(self, name: str) -> tuple[float | None, float | None]:
        recent = [one for one in self._ended.get(name, ()) if one.at_s >= self._clock() - TIMES_S]
        first = [one.ttft_s for one in recent if one.ttft_s is not None]
        later = [one.token_s for one in recent if one.token_s is not None]
        return median(first) if first else None, median(later) if later else None

    def _drafts(self, name: str, watched: WatchedService | None) -> tuple[float | None, float | None]:
        """Returns accept rate and length of the last minute; where it had too few steps, those that watching knows."""
        samples = self._samples.get(name)
        grew = grown(samples[0], samples[-1]) if samples else None
        if grew is None or grew.accepted is None or not grew.drafted or (grew.steps or 0) < LEAST_STEPS:
            return (watched.accept_rate, watched.accept_length) if watched else (None, None)
        return grew.accepted / grew.drafted, 1 + grew.accepted / grew.steps if grew.steps else None

    def forget_all_but(self, names: Iterable[str]) -> None:
        """Drops what is known of services that were forgotten."""
        known = set(names)
        for name in (self._samples.keys() | self._ended.keys()) - known:
            self._samples.pop(name, None)
            self._ended.pop(name, None)


def _within(samples: Iterable[EngineSample], span_s: float) -> EngineSample | None:
    """Returns the first of the samples of the last so many seconds."""
    found = list(samples)
    return next((one for one in found if one.at_s >= found[-1].at_s - span_s), None)
