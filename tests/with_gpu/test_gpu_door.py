"""The gateway in front of an engine at a GPU's speed, in turns with the engine asked past it."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import msgspec
import psutil
import pytest

from bench_seen import run_bench
from gpu_home import SGLANG, VLLM, Engine, GpuHome, kept
from stoker.records import BenchLoad, BenchRun, Target

ENGINES = [one for one in (SGLANG, VLLM) if one.is_here]
STREAMS, NEW_TOKENS, RUNS = 256, 512, 2
ORDER = ("through", "direct", "direct", "through", "through", "direct")  # what drifts meets both alike
pytestmark = pytest.mark.elsewhere(bool(ENGINES), "an unpacked engine (STOKER_SGLANG_SITE, STOKER_VLLM_SITE)")


@pytest.fixture(params=ENGINES, ids=[one.name for one in ENGINES])
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


def measure(home: GpuHome, target: Target, runs: int = RUNS) -> tuple[dict[str, list[float]], float]:
    """Returns the figures of each repeat, and the daemon's processor time for 1000 chunks, warm-ups among both."""
    before_s = processor_s(home)
    run = run_bench(
        target, prompts=(64,), new=NEW_TOKENS, loads=(BenchLoad("closed", STREAMS),), runs=runs, silence_s=120.0
    )  # fmt: skip
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


def test_nothing_of_an_engines_rate_is_lost_in_the_gateway(home: GpuHome) -> None:
    home.bring_up("crowd")
    rates: dict[str, list[float]] = {"through": [], "direct": []}
    measure(home, home.target("crowd"), runs=1)
    for side in ORDER:
        found, cost_ms = measure(home, home.target("crowd") if side == "through" else direct(home))
        home.note("door", "crowd", streams=STREAMS, new_tokens=NEW_TOKENS, side=side, cpu_ms_1000=cost_ms, figures=found)
        rates[side] += found["total_decode_tps"]
    assert statistics.median(rates["through"]) > 0.98 * statistics.median(rates["direct"])
