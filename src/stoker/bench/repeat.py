"""Measures one repeat: plays its requests, with looks at counters and machine before and after, and reads what came."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from stoker.bench.counting import CountText
from stoker.bench.exchange import Exchange, Job
from stoker.bench.lines import Lines
from stoker.bench.machine import MachineWatch
from stoker.bench.player import Follow, Played, Rules, play
from stoker.bench.reading import Answered, read_request
from stoker.bench.server import Server
from stoker.bench.speculation import RESET, speculation_between, speculation_told, went_back
from stoker.bench.steps import with_steps
from stoker.counters import Counters
from stoker.records import BenchRepeat, ClientSeen, RequestSeen, SpeculationSeen

SETTLE_S = 1.0  # vLLM's and SGLang's counters move up to some tenths of a second after the answer
LOOK_S = 0.02
WARMUPS_READ = 16
OTHERS = 1.02  # share of generated tokens above ours from which somebody else must have asked too


class Bench(NamedTuple):
    """What measuring needs: the server, connections to it, the machine where it is this one, and who counts texts.

    `is_stopped` tells that somebody wants it to end now.
    """

    server: Server
    lines: Lines
    watch: MachineWatch | None
    count_text: CountText | None
    is_stopped: Callable[[], bool] = lambda: False


class Repeated(NamedTuple):
    """A repeat, what makes it doubtful, whether it was played to its end, and when it began (`time.perf_counter`)."""

    repeat: BenchRepeat
    doubts: tuple[str, ...]
    is_whole: bool
    began_s: float


def warm_up(bench: Bench, jobs: Iterable[Job], opened: int, rules: Rules, follow: Follow | None = None) -> Repeated:
    """Plays jobs that count for nothing, and reads some of their answers: enough to see whether it is warm."""
    bench.lines.open(opened)
    played = play(bench.lines, jobs, rules, follow)
    requests = tuple(one.seen for one in _read_all(bench, played._replace(exchanges=played.exchanges[:WARMUPS_READ])))
    return Repeated(BenchRepeat(played.began_at, played.took_s, requests), (), played.is_whole, played.began_s)


def measure(bench: Bench, jobs: Iterable[Job], opened: int, rules: Rules, follow: Follow | None = None) -> Repeated:
    """Plays jobs with `opened` connections ready; of jobs that end by the clock each is read as soon as it is over."""
    bench.lines.open(opened)
    before = bench.server.counters()
    mark = bench.watch.mark() if bench.watch else None
    early: list[Answered] = []
    hear = _reader(bench, early) if rules.for_s is not None else None
    with _without_collector():
        played = play(bench.lines, jobs, rules, follow, hear)
    machine = bench.watch.since(mark) if bench.watch and mark else None
    answers = early or _read_all(bench, played)
    requests = [one.seen for one in answers]
    after = _await_counters(bench.server, before, requests)
    speculation, doubts = _speculation(bench.server, before, after, answers)
    repeat = BenchRepeat(
        began_at=played.began_at,
        took_s=max((one.sent_at_s + (one.last_token_s or 0.0) for one in requests if not one.error), default=played.took_s),
        requests=tuple(requests),
        speculation=speculation,
        machine=machine,
        client=client_seen(played),
    )
    said = [doubt for one in answers for doubt in one.doubts]
    return Repeated(repeat, (*said, *doubts), played.is_whole, played.began_s)


def _read_all(bench: Bench, played: Played) -> list[Answered]:
    over = [one for one in played.exchanges if one.is_over]
    return [read_request(one, played.began_s, one.job.new_tokens, bench.count_text) for one in over]


def _reader(bench: Bench, into: list[Answered]) -> Callable[[Exchange], None]:
    """Returns what reads an exchange at once and lets its bytes go: an hour of them is gigabytes."""
    began_s = time.perf_counter()

    def read(exchange: Exchange) -> None:
        answer = read_request(exchange, began_s, exchange.job.new_tokens, bench.count_text)
        answer.stream.texts.clear()
        into.append(answer)
        exchange.pieces.clear()

    return read


def client_seen(played: Played) -> ClientSeen:
    """Returns what measuring cost."""
    lags = [lag for one in played.exchanges for lag in one.lags_s]
    late = [one.sent_s - one.due_s for one in played.exchanges if one.due_s is not None]
    return ClientSeen(
        stamps="kernel" if played.has_stamps and lags else "clock",
        cores=played.cpu_s / played.took_s,
        busy=played.busy_s / played.took_s,
        read_lag_mean_s=sum(lags) / len(lags) if lags else None,
        read_lag_worst_s=max(lags, default=None),
        send_lag_worst_s=max(late, default=None),
        reconnected=played.reconnected,
    )


# Counters.


def _await_counters(server: Server, before: Counters | None, requests: Sequence[RequestSeen]) -> Counters | None:
    """Returns the counters once they have all that was answered, or as they are after SETTLE_S."""
    if before is None:
        return None
    answered = sum(one.output_tokens or 0 for one in requests)
    end_s = time.perf_counter() + SETTLE_S
    while (after := server.counters()) is not None and time.perf_counter() < end_s:
        if went_back(before, after) or (
            not after.running and after.since(before).get("generated_tokens_total", 0) >= answered
        ):
            break
        time.sleep(LOOK_S)
    return after


def _speculation(
    server: Server, before: Counters | None, after: Counters | None, answers: Sequence[Answered]
) -> tuple[SpeculationSeen | None, tuple[str, ...]]:
    """Returns what was speculated, by the counters unless others moved them too, else by what the answers tell."""
    streams = [one.stream for one in answers if not one.seen.error]
    told = speculation_told(streams)
    if before is None or after is None:
        return told, ()
    if went_back(before, after):
        return told, (RESET,)
    counted = speculation_between(before, after)
    ours = sum(one.seen.output_tokens or 0 for one in answers)
    generated = after.since(before).get("generated_tokens_total")
    if generated is not None and ours and generated > ours * OTHERS + len(answers):
        doubt = f"the engine generated {generated} tokens and our answers had {ours}: somebody else asked it meanwhile"
        return told or counted, (doubt,)
    if counted is not None and counted.accept_rate is None and counted.verify_steps:
        counted = with_steps(counted, streams, server.drafts_a_step)
    return counted or told, ()


@contextmanager
def _without_collector() -> Iterator[None]:
    """Keeps Python from looking for garbage meanwhile, which would stop everything for milliseconds."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
