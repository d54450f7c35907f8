"""The gateway in front of an engine at a GPU's speed: in turns with the engine asked past it, both at once, and one alone.

One engine's rate differs from turn to turn by more than 2 %. Streams that run beside each other share one batch, so
what they differ by is the gateway's; both sides begin each repeat together.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from threading import Barrier

import psutil
import pytest

from bench_seen import run_bench
from gpu_home import SGLANG, VLLM, Engine, GpuHome, kept
from stoker.records import BenchLoad, BenchRepeat, BenchRun, Target
from stoker.tune.ratios import interval

ENGINES = [one for one in (SGLANG, VLLM) if one.is_here]
STREAMS, NEW_TOKENS, RUNS = 256, 512, 2
HALF, LONG_TOKENS, PAIRS, WAIT_S = STREAMS // 2, 1536, 6, 300.0
ALONE_TOKENS, ALONE_RUNS, ADDED_S = 128, 20, 0.005  # a tenth of a token's time at 20 tok/s, which a large model has
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


def processor_s(home: GpuHome) -> float:
    """Returns the processor time that the daemon took so far."""
    assert home.daemon_pid is not None
    used = psutil.Process(home.daemon_pid).cpu_times()
    return used.user + used.system


def stream(target: Target, streams: int, new: int, runs: int, tell: Callable[[str], None] = lambda text: None) -> BenchRun:
    """Returns what so many streams at once had of a target."""
    load = (BenchLoad("closed", streams),)
    return run_bench(target, prompts=(64,), new=new, loads=load, runs=runs, tell=tell, silence_s=120.0)


def measure(home: GpuHome, target: Target, runs: int = RUNS) -> tuple[dict[str, list[float]], float]:
    """Returns the figures of each repeat, and the daemon's processor time for 1000 chunks, warm-ups among both."""
    before_s = processor_s(home)
    run = stream(target, STREAMS, NEW_TOKENS, runs)
    return figures(run), (processor_s(home) - before_s) * 1e6 / chunks(run)


def figures(run: BenchRun) -> dict[str, list[float]]:
    [cell] = run.cells
    assert cell.failed == 0, cell.errors
    return {one.name: list(one.values) for one in cell.figures} | {"chunk_gap_p99_s": list(map(gap_p99_s, cell.repeats))}


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


def chunks(run: BenchRun) -> int:
    """How many chunks came, as many in each warm-up as in a repeat."""
    [cell] = run.cells
    seen = sum(one.chunks for repeat in cell.repeats for one in repeat.requests)
    return seen * (cell.warmups + len(cell.repeats)) // len(cell.repeats)


def stream_in_step(target: Target, barrier: Barrier) -> dict[str, list[float]]:
    """Returns the figures of streams whose every repeat begins when that of the other side does."""

    def await_the_other(text: str) -> None:
        if text.startswith("run"):
            barrier.wait(WAIT_S)

    return figures(stream(target, HALF, LONG_TOKENS, PAIRS, await_the_other))


def side_by_side(home: GpuHome) -> dict[str, dict[str, list[float]]]:
    """Returns the figures of streams through the gateway, and of as many past it at the same time."""
    context, sides = get_context("fork"), sides_of(home)
    with context.Manager() as manager, ProcessPoolExecutor(2, context) as pool:  # a process each, as two clients would be
        barrier = manager.Barrier(2)
        asked = {side: pool.submit(stream_in_step, target, barrier) for side, target in sides.items()}
        return {side: one.result() for side, one in asked.items()}


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
    seen = side_by_side(home)
    for side, found in seen.items():
        home.note("beside", "crowd", streams=HALF, new_tokens=LONG_TOKENS, side=side, figures=found)
    pairs = zip(*(middles(seen[side]["request_decode_tps"]) for side in ("through", "direct")), strict=True)
    middle, half = interval([math.log(through / past) for through, past in pairs], 0.95)
    home.note("kept", "crowd", ratio=math.exp(middle), between=half and [math.exp(middle - half), math.exp(middle + half)])
    assert middle > math.log(0.98)


def test_the_rate_of_many_streams_is_that_of_the_engine_alone(home: GpuHome) -> None:
    home.bring_up("crowd")
    sides, rates = sides_of(home), defaultdict[str, list[float]](list)
    measure(home, sides["through"], runs=1)
    for side in ORDER:
        found, cost_ms = measure(home, sides[side])
        home.note("door", "crowd", streams=STREAMS, new_tokens=NEW_TOKENS, side=side, cpu_ms_1000=cost_ms, figures=found)
        rates[side] += found["total_decode_tps"]
    # What is lost beyond 2 % has to be within what the engine itself differs by.
    assert max(rates["through"]) > 0.98 * statistics.median(rates["direct"])
    assert statistics.median(rates["through"]) > 0.98 * min(rates["direct"])
