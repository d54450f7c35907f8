"""When requests come, and what may be asked for."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from statistics import fmean, stdev

import pytest

from bench_seen import settings
from stoker.bench.arrivals import due_times_s, read_trace
from stoker.errors import WrongUse
from stoker.flows.bench_asked import Grid, loads_of, traced
from stoker.records import Arrivals, BenchLoad
from support import fails


def gaps(arrivals: Arrivals, burstiness: float | None = None, count: int = 4000) -> list[float]:
    """Returns the gaps of a schedule of ten a second."""
    due = due_times_s(BenchLoad(arrivals, None, 10.0, burstiness), count, "seed")
    known = [one for one in due if one is not None]
    assert len(known) == count
    assert known[0] == 0.0
    return [after - before for before, after in pairwise(known)]


def test_a_constant_rate_has_equal_gaps() -> None:
    assert max(gaps("constant")) == pytest.approx(min(gaps("constant")))


@pytest.mark.parametrize(
    ("arrivals", "burstiness", "variation"), [("poisson", None, 1.0), ("gamma", 4.0, 0.5), ("gamma", 0.25, 2.0)]
)
def test_drawn_gaps_have_the_mean_and_the_scatter_of_their_kind(
    arrivals: Arrivals, burstiness: float | None, variation: float
) -> None:
    found = gaps(arrivals, burstiness)
    assert fmean(found) == pytest.approx(0.1, rel=0.1)
    assert stdev(found) / fmean(found) == pytest.approx(variation, rel=0.15)


def test_the_same_seed_gives_the_same_times_and_a_closed_load_none() -> None:
    load = BenchLoad("poisson", None, 3.0)
    assert due_times_s(load, 9, "a") == due_times_s(load, 9, "a") != due_times_s(load, 9, "b")
    assert due_times_s(BenchLoad("closed", 4), 3, "a") == [None, None, None]


def test_a_trace_begins_at_zero_and_is_in_order(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_text(
        '{"at_s": 7.5, "prompt_tokens": 20, "new_tokens": 4}\n\n{"at_s": 5, "prompt_tokens": 10, "new_tokens": 2}\n'
    )
    assert [(one.at_s, one.prompt_tokens) for one in read_trace(file)] == [(0.0, 10), (2.5, 20)]
    grid, changed = traced(file, Grid((1,), (1,), (0,), (), ("prose",)), settings())
    [cell] = grid.cells()
    assert (cell.prompt_tokens, cell.new_tokens, cell.load.arrivals, len(changed.trace)) == (15, 3, "trace", 2)


@pytest.mark.parametrize("text", ["", "{", '{"at_s": 0}', '{"at_s": -1, "prompt_tokens": 1, "new_tokens": 1}', "\udcff"])
def test_a_trace_that_cannot_be_is_told(tmp_path: Path, text: str) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with fails(WrongUse, "trace"):
        read_trace(file)


def test_cells_come_in_the_order_of_depth_prompt_new_tokens_and_load() -> None:
    grid = Grid((512, 2048), (128,), (0, 4096), loads_of((1, 8), (), "poisson", None), ("code",))
    found = [(one.depth_tokens, one.prompt_tokens, one.load.concurrency) for one in grid.cells()]
    assert found == [(depth, prompt, load) for depth in (0, 4096) for prompt in (512, 2048) for load in (1, 8)]


def test_each_text_has_cells_of_its_own() -> None:
    grid = Grid((512,), (128,), (0,), loads_of((1, 8), (), "poisson", None), ("code", "chat"))
    found = [(one.content, one.load.concurrency) for one in grid.cells()]
    assert found == [("code", 1), ("code", 8), ("chat", 1), ("chat", 8)]


def test_a_load_is_closed_or_open_and_not_both() -> None:
    assert loads_of((), (2.0,), "gamma", 0.5) == (BenchLoad("gamma", None, 2.0, 0.5),)
    assert loads_of((), (), "poisson", None) == (BenchLoad("closed", 1),)
    with fails(WrongUse, "exclude each other"):
        loads_of((1,), (2.0,), "poisson", None)
    with fails(WrongUse, "above 0"):
        loads_of((), (0.0,), "poisson", None)
