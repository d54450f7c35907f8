"""Measures one cell: warms up until it is steady, then repeats until enough is known, and says what is doubtful of it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, repeat
from typing import Any, NamedTuple

import msgspec

from stoker.bench.arrivals import TraceLine, due_times_s
from stoker.bench.composing import Composer, Order, repeat_name, soak_names
from stoker.bench.counter_watch import CounterWatch
from stoker.bench.doubts import doubts_of
from stoker.bench.exchange import Job
from stoker.bench.figures import answered, figures_of, itl_token_s
from stoker.bench.intervals import LEAST_VALUES, is_as_narrow_as, median_of
from stoker.bench.machine import join_seen
from stoker.bench.player import Rules
from stoker.bench.repeat import Bench, Repeated, measure, warm_up
from stoker.bench.series import Beside, make_series, span_of
from stoker.bench.speculation import join_speculation
from stoker.bench.whole_replies import LEAST_MORE, MOST_NEW, ask_whole, tells_when_whole, with_positions
from stoker.records import BenchCell, BenchRepeat, BenchSlo, CellResult, ClientSeen, Ended, SeriesPoint, SpeculationSeen

STEADY = 0.1  # two repeats in a row whose medians differ by less, and it is warm
MOST_WARMUPS = 6
WARMUP_SHARE = 0.3  # of the budget
PRECISE = ("ttft_s", "itl_token_s")
MOST_BUDGETS = 3.0
MOST_FAILED = 2  # repeats in a row without an answer

Tell = Callable[[str], None]


class Settings(NamedTuple):
    """How to measure: `runs` repeats, or until intervals are `precision` of their median wide or `budget_s` is over.

    `least_runs` there are, however long they take. `requests` a repeat, None: as many as run at once. `soak_s` instead keeps
    one load up for so long. `more` goes into each body. `silence_s` without a byte, and a request is given up. Once enough
    is known or the budget is over, `goes_on` is asked after each repeat whether it goes on all the same, with what is known
    so far; at most until `MOST_BUDGETS` times the budget. `between` is called after each repeat that counts, with its
    number.
    """

    seed: int
    runs: int | None
    precision: float
    budget_s: float
    silence_s: float
    requests: int | None = None
    soak_s: float | None = None
    slo: BenchSlo | None = None
    more: Mapping[str, Any] = {}
    trace: Sequence[TraceLine] = ()
    least_runs: int = 1
    goes_on: Callable[[CellResult], bool] | None = None
    between: Callable[[BenchCell, int], None] | None = None


def measure_cell(bench: Bench, composer: Composer, cell: BenchCell, settings: Settings, tell: Tell) -> CellResult:
    """Returns all that was measured of a cell, also where somebody interrupted it."""
    return _Measuring(bench, composer, cell, settings, tell).run()


class _Measuring:
    def __init__(self, bench: Bench, composer: Composer, cell: BenchCell, settings: Settings, tell: Tell) -> None:
        self._bench, self._composer, self._cell, self._settings, self._tell = bench, composer, cell, settings, tell
        self._begun_s = time.perf_counter()
        self._kept: list[Repeated] = []
        self._cut: Repeated | None = None
        self._beside: Beside | None = None
        self._failed_in_a_row = 0

    def run(self) -> CellResult:
        warmups = self._warm_up()
        if self._bench.is_stopped():
            return self._result(warmups, "interrupted")
        result = self._result(warmups, self._soak() if self._settings.soak_s is not None else self._repeat())
        if result.ended in ("interrupted", "failed") or not tells_when_whole(result.speculation, self._bench):
            return result
        return with_positions(result, self._ask_more())

    def _ask_more(self) -> SpeculationSeen | None:
        """Asks what was measured once more for what whole replies alone tell: as many as were under way at once, or four.

        How many tokens are drafted may depend on how many requests run (`draft_tiers`), so no more and no fewer at once.
        """
        self._tell("what is accepted by position")
        at_once = self._cell.load.concurrency or 1
        count = max(LEAST_MORE, at_once)
        ttft_s, token_s = (*_middles(self._kept[-1].repeat), 0.0, 0.0)[:2]
        one_s = at_once * ttft_s + min(self._order().new_tokens, MOST_NEW) * token_s
        if count / at_once * one_s > WARMUP_SHARE * self._settings.budget_s:
            count = at_once
        jobs = list(islice(self._measured(), count))
        silence_s = max(self._settings.silence_s, 2 * one_s)  # nothing comes of a reply until it is whole
        return ask_whole(self._bench, jobs, Rules(silence_s, at_once, None, self._bench.is_stopped))

    def _measured(self) -> Iterator[Job]:
        """Yields the requests that were measured, due at once and for at most MOST_NEW tokens; the last repeat's first."""
        if self._settings.soak_s is not None:
            names, orders = soak_names(), [self._order()]
        else:
            names, orders = map(repeat_name, reversed(range(len(self._kept)))), self._orders(is_warmup=False)
        shorter = [one._replace(new_tokens=min(one.new_tokens, MOST_NEW), due_s=None) for one in orders]
        return chain.from_iterable(self._composer.jobs(shorter, name) for name in names)

    # Warming up.

    def _warm_up(self) -> int:
        """Throws repeats away until two in a row agree; returns how many."""
        before: Sequence[float] = ()
        composer = self._composer.for_warmup()
        for number in range(1, MOST_WARMUPS + 1):
            self._tell(f"warming up, {number}")
            seen = self._play(self._orders(is_warmup=True), f"warm-up {number}", composer, is_warmup=True)
            now = _middles(seen.repeat)
            spent = (time.perf_counter() - self._begun_s) / self._settings.budget_s
            if not now or _agree(before, now) or spent > WARMUP_SHARE or not seen.is_whole:
                return number
            before = now
        return MOST_WARMUPS

    # Repeating.

    def _repeat(self) -> Ended:
        while True:
            of = f" of {self._settings.runs}" if self._settings.runs else ""
            self._tell(f"run {len(self._kept) + 1}{of}{self._so_far()}")
            seen = self._play(self._orders(is_warmup=False), repeat_name(len(self._kept)), self._composer)
            if not seen.is_whole:
                self._cut = seen
                return "interrupted"
            self._kept.append(seen)
            if self._settings.between is not None:
                self._settings.between(self._cell, len(self._kept) - 1)
                if self._bench.is_stopped():
                    return "interrupted"
            if (ended := self._ended()) is not None and not self._goes_on(ended):
                return ended

    def _so_far(self) -> str:
        """What is known by now, for people who wait: the medians of the repeats until here."""
        middles = [middle for one in self._kept if len(middle := _middles(one.repeat)) == len(PRECISE)]
        if not middles:
            return ""
        ttft_s, token_s = (median_of(column) for column in zip(*middles, strict=True))
        return f", TTFT {ttft_s * 1000:,.0f} ms, {1 / token_s:,.1f} tok/s each" if token_s else ""

    def _ended(self) -> Ended | None:
        self._failed_in_a_row = 0 if answered(self._kept[-1].repeat) else self._failed_in_a_row + 1
        if self._failed_in_a_row >= MOST_FAILED:
            return "failed"
        if self._settings.runs is not None:
            return "runs" if len(self._kept) >= self._settings.runs else None
        if len(self._kept) < self._settings.least_runs:
            return None
        if len(self._kept) >= LEAST_VALUES and self._is_precise():
            return "precision"
        return "budget" if time.perf_counter() - self._begun_s > self._settings.budget_s else None

    def _goes_on(self, ended: Ended) -> bool:
        goes_on, spent_s = self._settings.goes_on, time.perf_counter() - self._begun_s
        if goes_on is None or ended not in ("precision", "budget") or spent_s > MOST_BUDGETS * self._settings.budget_s:
            return False
        return goes_on(self._result(0, ended))

    def _is_precise(self) -> bool:
        middles = [_middles(one.repeat) for one in self._kept]
        columns = zip(*(one for one in middles if one), strict=False)
        return all(is_as_narrow_as(column, self._settings.precision) for column in columns)

    def _soak(self) -> Ended:
        """Keeps one load up for as long as was asked."""
        self._tell(f"for {self._settings.soak_s:g} s")
        load = self._cell.load
        orders: Iterable[Order] = repeat(self._order())
        if load.arrivals != "closed":
            most = int((load.rate_per_s or 1.0) * (self._settings.soak_s or 0.0)) + 1
            due = due_times_s(load, most, f"{self._settings.seed}:soak")
            orders = (self._order()._replace(due_s=one) for one in due)
        jobs = (self._composer.jobs([order], name)[0] for name, order in zip(soak_names(), orders, strict=False))
        rules = Rules(self._settings.silence_s, load.concurrency, self._settings.soak_s, self._bench.is_stopped)
        watch = self._bench.watch
        counters = CounterWatch(self._bench.server.engine_asker.another(), span_of(self._settings.soak_s or 0.0))
        try:
            seen = measure(self._bench, jobs, self._opened(), rules)
        finally:
            counted = counters.close()
        self._beside = Beside(seen.began_s, watch.samples() if watch else (), counted)
        self._kept.append(seen)
        return "budget" if seen.is_whole else "interrupted"

    # Playing.

    def _orders(self, *, is_warmup: bool) -> list[Order]:
        cell, load = self._cell, self._cell.load
        if is_warmup and load.arrivals != "closed":
            return [self._order()]
        if self._settings.trace:
            return [Order(one.prompt_tokens, one.new_tokens, one.at_s) for one in self._settings.trace]
        wanted = self._settings.requests or load.concurrency or 1
        due = due_times_s(load, wanted, f"{self._settings.seed}:{len(self._kept)}")
        return [Order(cell.prompt_tokens, cell.new_tokens or 0, one) for one in due]

    def _order(self) -> Order:
        return Order(self._cell.prompt_tokens, self._cell.new_tokens or 0)

    def _play(self, orders: Sequence[Order], name: str, composer: Composer, *, is_warmup: bool = False) -> Repeated:
        jobs = composer.jobs(orders, name)
        most = 1 if is_warmup and self._cell.load.arrivals != "closed" else self._cell.load.concurrency
        follow = composer.follow if self._cell.turns > 1 else None
        rules = Rules(self._settings.silence_s, most, None, self._bench.is_stopped)
        how = warm_up if is_warmup else measure
        return how(self._bench, jobs, min(self._opened(), len(jobs)), rules, follow)

    def _opened(self) -> int:
        return self._cell.load.concurrency or OPENED_FOR_ARRIVALS

    # The result.

    def _result(self, warmups: int, ended: Ended) -> CellResult:
        kept = self._kept or ([self._cut] if self._cut else [])
        repeats = tuple(one.repeat for one in kept)
        requests = [one for repeat in repeats for one in repeat.requests]
        errors = Counter(one.error for one in requests if one.error)
        clients = [repeat.client for repeat in repeats if repeat.client]
        machine = join_seen([repeat.machine for repeat in repeats if repeat.machine])
        client = join_clients(clients)
        result = CellResult(
            cell=self._cell, figures=figures_of(repeats, self._settings.slo),
            counted_by=tuple(sorted({one.counted_by for one in requests if not one.error})),
            asked=len(requests), failed=sum(errors.values()), errors=tuple(errors.most_common()),
            speculation=join_speculation([repeat.speculation for repeat in repeats]), machine=machine, repeats=repeats,
            client=client, series=self._series(repeats), warmups=warmups, ended=ended, is_whole=ended != "interrupted",
        )  # fmt: skip
        said = Counter(doubt for one in kept for doubt in one.doubts)
        return msgspec.structs.replace(result, warnings=doubts_of(result, said))

    def _series(self, repeats: Sequence[BenchRepeat]) -> tuple[SeriesPoint, ...]:
        whole_s = self._settings.soak_s
        return () if whole_s is None or self._beside is None else make_series(repeats[0], whole_s, self._beside)


OPENED_FOR_ARRIVALS = 8


def _middles(repeat: BenchRepeat) -> tuple[float, ...]:
    """Returns the medians by which steadiness and precision are judged; empty where nothing was answered."""
    whole = answered(repeat)
    ttft = [one.ttft_s for one in whole if one.ttft_s is not None]
    each = [value for one in whole if (value := itl_token_s(one)) is not None]
    return tuple(median_of(values) for values in (ttft, each) if values)


def _agree(before: Sequence[float], now: Sequence[float]) -> bool:
    both = list(zip(before, now, strict=False))
    return len(before) == len(now) and all(abs(one - other) <= STEADY * one for one, other in both)


def join_clients(clients: Sequence[ClientSeen]) -> ClientSeen | None:
    """Returns what measuring cost over several repeats: the worst of each."""
    if not clients:
        return None
    return ClientSeen(
        stamps="clock" if any(one.stamps == "clock" for one in clients) else "kernel",
        cores=max(one.cores for one in clients),
        busy=max(one.busy for one in clients),
        read_lag_mean_s=_worst(one.read_lag_mean_s for one in clients),
        read_lag_worst_s=_worst(one.read_lag_worst_s for one in clients),
        send_lag_worst_s=_worst(one.send_lag_worst_s for one in clients),
        reconnected=sum(one.reconnected for one in clients),
    )


def _worst(values: Iterator[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
