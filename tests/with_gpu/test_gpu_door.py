"""The gateway in front of an engine at a GPU's speed: in turns with the engine asked past it, both at once, and one alone.

Streams that run beside each other share one batch, so what they differ by is the gateway's; both sides begin each repeat
together. What they do not show is whether the engine is slower for all where a gateway reads. Turns do, but an engine's
rate differs from one to the next by a tenth and more: they are short, and each is compared with the one that follows it.
What counts of a turn is all its tokens from its first request to its last token: a decode rate begins with the first token,
which came sooner through the gateway, and leaves out what a stream's first write brought, which is more where it came late.
Where the engine's own server is what holds it up, as it does both, its processor time a token is compared as well.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from threading import Barrier, Semaphore
from typing import Any, NamedTuple, TypeVar

import psutil
import pytest

from bench_seen import run_bench
from gpu_home import SGLANG, VLLM, Engine, GpuHome, kept
from stoker.records import BenchCell, BenchLoad, BenchRepeat, BenchRun, Target
from stoker.tune.ratios import interval

ENGINES = [one for one in (SGLANG, VLLM) if one.is_here]
STREAMS, TURN_TOKENS = 256, 128
# Where turns differ by 15 %, a hundred pairs leave 3.5 % of doubt. More of one start fill SGLang's cache of prompts, and
# it is slow from then on. A run that is cut off keeps its blocks.
STARTS, BLOCKS, TURNS = 2, 3, 17
HALF, LONG_TOKENS, PAIRS, WAIT_S = STREAMS // 2, 1536, 6, 300.0
ALONE_TOKENS, ALONE_RUNS, ADDED_S = 128, 20, 0.005  # a tenth of a token's time at 20 tok/s, which a large model has
T = TypeVar("T")
SHOWN = ("total_e2e_tps", "request_decode_tps", "ttft_s", "itl_token_s", "itl_chunk_s")
ORDER = ("through", "direct", "direct", "through", "through", "direct")  # what drifts meets both alike
pytestmark = [
    pytest.mark.elsewhere(bool(ENGINES), "an unpacked engine (STOKER_SGLANG_SITE, STOKER_VLLM_SITE)"),
    pytest.mark.long,
]


@pytest.fixture(scope="module", params=ENGINES, ids=[one.name for one in ENGINES])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GpuHome]:
    """A Stoker with one service that answers 256 requests at once."""
    engine: Engine = request.param
    table = engine.table("crowd").replace("parallel = 8", f"parallel = {STREAMS}")
    with kept(GpuHome(tmp_path_factory.mktemp("door"), engine, table)) as home:
        yield home


def sides_of(home: GpuHome) -> dict[str, Target]:
    """Returns how the service is asked through the gateway and past it."""
    return {"through": home.target("crowd"), "direct": home.target_past_the_gateway("crowd")}


def processor_s(pids: Iterable[int]) -> list[float]:
    """Returns the processor time that each process took so far, without its children."""
    return [used.user + used.system for used in (psutil.Process(pid).cpu_times() for pid in pids)]


def count_roughly(text: str) -> int:
    """Returns how many tokens a text may be.

    Asked of the server, 256 prompts took it as long as half of a turn; of two sides that had met, the one that had its
    prompts first began before the other, and the engine had it before the other.
    """
    return len(text) // 4


def stream(target: Target, streams: int, new: int, runs: int, **hooks: Any) -> BenchRun:
    """Returns what so many streams at once had of a target."""
    load = (BenchLoad("closed", streams),)
    hooks |= {"tokenizer": count_roughly, "silence_s": WAIT_S}
    return run_bench(target, prompts=(64,), new=new, loads=load, runs=runs, **hooks)


def figures(run: BenchRun) -> dict[str, list[float]]:
    [cell] = run.cells
    assert cell.failed == 0, cell.errors
    return {one.name: list(one.values) for one in cell.figures if one.name in SHOWN} | {
        "chunk_gap_p99_s": list(map(gap_p99_s, cell.repeats))
    }


def gap_p99_s(repeat: BenchRepeat) -> float:
    """Returns within which time 99 of 100 chunks follow the one before; those that one read brings follow at once."""
    gaps_s: list[float] = []
    for one in repeat.requests:
        gaps_s += [now.at_s - before.at_s for before, now in pairwise(one.writes)]
        gaps_s += [0.0] * (one.chunks - len(one.writes))
    return statistics.quantiles(gaps_s, n=100)[-1]


def middles(rates: list[float]) -> list[float]:
    """Returns the middle of the streams of each repeat."""
    return [statistics.median(rates[place : place + HALF]) for place in range(0, len(rates), HALF)]


class Side(NamedTuple):
    """One of two clients: how it asks, where both meet, for turns its own and the other's, and whose time is counted."""

    target: Target
    both: Barrier
    own: Semaphore
    other: Semaphore
    pids: dict[str, int]


def stream_in_step(side: Side) -> dict[str, list[float]]:
    """Returns the figures of streams whose every repeat begins when that of the other side does."""

    def await_the_other(text: str) -> None:
        if text.startswith("run"):
            side.both.wait(WAIT_S)

    return figures(stream(side.target, HALF, LONG_TOKENS, PAIRS, tell=await_the_other))


def stream_in_turns(side: Side) -> dict[str, list[float]]:
    """Returns the figures of streams whose every repeat follows one of the other side, with what a token cost whom."""
    began_s: list[list[float]] = []
    ended_s: list[list[float]] = []

    def await_own(text: str) -> None:
        if text.startswith("run 1 "):  # warm-ups are over on both sides
            side.both.wait(WAIT_S)
        if text.startswith("run"):
            assert side.own.acquire(timeout=WAIT_S)
            began_s.append(processor_s(side.pids.values()))

    def give_over(cell: BenchCell, number: int) -> None:
        ended_s.append(processor_s(side.pids.values()))
        side.other.release()

    found = figures(stream(side.target, STREAMS, TURN_TOKENS, TURNS, tell=await_own, between=give_over))
    for place, name in enumerate(side.pids):
        used_s = [after[place] - before[place] for before, after in zip(began_s, ended_s, strict=True)]
        found[f"{name}_us_token"] = [1e6 * one / (STREAMS * TURN_TOKENS) for one in used_s]
    return found


def both_sides(home: GpuHome, ask: Callable[[Side], T]) -> dict[str, T]:
    """Returns what a client through the gateway and one past it were given, in a process each, as two clients are."""
    context, sides = get_context("fork"), sides_of(home)
    server, gateway = home.service("crowd").pid, home.daemon_pid
    assert server is not None and gateway is not None
    pids = {"server": server, "gateway": gateway}
    with context.Manager() as manager, ProcessPoolExecutor(2, context) as pool:
        both, first, second = manager.Barrier(2), manager.Semaphore(1), manager.Semaphore(0)
        turns = {"through": (first, second), "direct": (second, first)}
        asked = {name: pool.submit(ask, Side(target, both, *turns[name], pids)) for name, target in sides.items()}
        return {name: one.result() for name, one in asked.items()}


def is_no_later(seen: dict[str, dict[str, list[float]]]) -> bool:
    """Tells whether 99 of 100 chunks follow as soon through the gateway as past it, but for what a client may not notice."""
    through, past = (statistics.median(seen[side]["chunk_gap_p99_s"]) for side in ("through", "direct"))
    return through - past < ADDED_S


def kept_of(pairs: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Returns the mean logarithm of what is kept, and half the interval that holds it."""
    middle, half = interval([math.log(through / past) for through, past in pairs], 0.95)
    assert half is not None
    return middle, half


def test_a_request_alone_has_its_first_token_as_soon_through_the_gateway(home: GpuHome) -> None:
    home.bring_up("crowd")
    sides, first_s = sides_of(home), defaultdict[str, list[float]](list)
    for side in ORDER:
        found = figures(stream(sides[side], 1, ALONE_TOKENS, ALONE_RUNS))
        home.note("alone", "crowd", streams=1, new_tokens=ALONE_TOKENS, side=side, figures=found)
        first_s[side] += found["ttft_s"]
    assert statistics.median(first_s["through"]) - statistics.median(first_s["direct"]) < ADDED_S


def test_streams_through_the_gateway_keep_up_with_those_beside_them(home: GpuHome) -> None:
    home.bring_up("crowd")
    seen = both_sides(home, stream_in_step)
    for side, found in seen.items():
        home.note("beside", "crowd", streams=HALF, new_tokens=LONG_TOKENS, side=side, figures=found)
    pairs = zip(*(middles(seen[side]["request_decode_tps"]) for side in ("through", "direct")), strict=True)
    middle, half = kept_of(pairs)
    home.note("kept", "crowd", ratio=math.exp(middle), between=[math.exp(middle - half), math.exp(middle + half)])
    all_middle, all_half = kept_of(zip(*(seen[side]["total_e2e_tps"] for side in ("through", "direct")), strict=True))
    # One batch serves both sides, so repeats agree to 0.1 %, and a loss of 2 % would be seen beyond doubt.
    assert min(middle - half, all_middle - all_half) > math.log(0.98)
    assert is_no_later(seen)


def test_many_streams_have_the_engines_rate_through_the_gateway_turn_by_turn(home: GpuHome) -> None:
    pairs: list[tuple[float, float]] = []
    for _ in range(STARTS):
        home.run("down", "crowd")
        home.bring_up("crowd")
        for _ in range(BLOCKS):
            seen = both_sides(home, stream_in_turns)
            for side, found in seen.items():
                home.note("door", "crowd", streams=STREAMS, new_tokens=TURN_TOKENS, side=side, figures=found)
            pairs += zip(*(seen[side]["total_e2e_tps"] for side in ("through", "direct")), strict=True)
    middle, half = kept_of(pairs)
    assert middle + half > math.log(0.98)  # no more than 2 % is lost beyond doubt
