"""The gateway in front of an engine at a GPU's speed: in turns with the engine asked past it, and both at once.

One engine's rate differs from turn to turn by more than 2 %. Streams that run beside each other share one batch, so
what they differ by is the gateway's.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import msgspec
import psutil
import pytest

from bench_seen import run_bench
from gpu_home import SGLANG, VLLM, Engine, GpuHome, kept
from stoker.records import BenchLoad, BenchRun, Target

ENGINES = [one for one in (SGLANG, VLLM) if one.is_here]
STREAMS, NEW_TOKENS, RUNS = 256, 512, 2
HALF, LONG_TOKENS, TURNS = STREAMS // 2, 1536, 3
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


def direct(home: GpuHome) -> Target:
    """Returns how the engine is asked past the gateway."""
    through, address = home.target("crowd"), home.service("crowd").address
    assert address is not None and through.engine_key is not None
    return msgspec.structs.replace(through, url=f"{address}/v1", key=through.engine_key)


def processor_s(home: GpuHome) -> float:
    """Returns the processor time that the daemon took so far."""
    assert home.daemon_pid is not None
    used = psutil.Process(home.daemon_pid).cpu_times()
    return used.user + used.system


def stream(target: Target, streams: int, new: int, runs: int) -> BenchRun:
    """Returns what so many streams at once had of a target."""
    load = (BenchLoad("closed", streams),)
    return run_bench(target, prompts=(64,), new=new, loads=load, runs=runs, silence_s=120.0)


def measure(home: GpuHome, target: Target, runs: int = RUNS) -> tuple[dict[str, list[float]], float]:
    """Returns the figures of each repeat, and the daemon's processor time for 1000 chunks, warm-ups among both."""
    before_s = processor_s(home)
    run = stream(target, STREAMS, NEW_TOKENS, runs)
    return figures(run), (processor_s(home) - before_s) * 1e6 / chunks(run)


def figures(run: BenchRun) -> dict[str, list[float]]:
    [cell] = run.cells
    assert cell.failed == 0, cell.errors
    return {one.name: list(one.values) for one in cell.figures}


def chunks(run: BenchRun) -> int:
    """How many chunks came, as many in each warm-up as in a repeat."""
    [cell] = run.cells
    seen = sum(one.chunks for repeat in cell.repeats for one in repeat.requests)
    return seen * (cell.warmups + len(cell.repeats)) // len(cell.repeats)


def side_by_side(home: GpuHome) -> dict[str, dict[str, list[float]]]:
    """Returns the figures of streams through the gateway, and of as many past it at the same time."""
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:  # a process each, as two clients would be
        sides = {"through": home.target("crowd"), "direct": direct(home)}
        asked = {side: pool.submit(stream, target, HALF, LONG_TOKENS, RUNS) for side, target in sides.items()}
        return {side: figures(one.result()) for side, one in asked.items()}


def test_streams_through_the_gateway_keep_up_with_those_beside_them(home: GpuHome) -> None:
    home.bring_up("crowd")
    logs = []
    for _ in range(TURNS):
        seen = side_by_side(home)
        for side, found in seen.items():
            home.note("beside", "crowd", streams=HALF, new_tokens=LONG_TOKENS, side=side, figures=found)
        through, past = (statistics.median(seen[side]["request_decode_tps"]) for side in ("through", "direct"))
        logs.append(math.log(through / past))
    assert statistics.mean(logs) > math.log(0.98)


def test_the_rate_of_many_streams_is_that_of_the_engine_alone(home: GpuHome) -> None:
    home.bring_up("crowd")
    rates: dict[str, list[float]] = {"through": [], "direct": []}
    measure(home, home.target("crowd"), runs=1)
    for side in ORDER:
        found, cost_ms = measure(home, home.target("crowd") if side == "through" else direct(home))
        home.note("door", "crowd", streams=STREAMS, new_tokens=NEW_TOKENS, side=side, cpu_ms_1000=cost_ms, figures=found)
        rates[side] += found["total_decode_tps"]
    # What is lost beyond 2 % has to be within what the engine itself differs by.
    assert max(rates["through"]) > 0.98 * statistics.median(rates["direct"])
    assert statistics.median(rates["through"]) > 0.98 * min(rates["direct"])
