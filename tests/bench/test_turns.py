"""Asking somebody else between the repeats of a benchmark: the same prompts, one by one."""

from __future__ import annotations

import json
import signal
from contextlib import ExitStack

import pytest

from bench_seen import CLOSED, make_cell, run_bench
from bench_server import bench_server, refuses
from stoker.bench.turns import take_turns
from stoker.records import BenchCell, BenchLoad, Target

RUNS, TOKENS = 3, 8


@pytest.mark.parametrize("load", [CLOSED, BenchLoad("closed", 2)])
def test_number_by_number_both_are_asked_the_same(load: BenchLoad) -> None:
    asked: list[tuple[BenchCell, int]] = []
    with bench_server(tokens=TOKENS) as one, bench_server(tokens=TOKENS) as other, ExitStack() as stack:
        cell = make_cell(prompt_tokens=128, new_tokens=TOKENS, load=load)
        turns = take_turns(Target(f"{other.url}/v1", "m"), None, cell, 1, stack)

        def between(now: BenchCell, number: int) -> None:
            asked.append((now, number))
            assert not turns.play(number).requests[-1].error

        run_bench(Target(f"{one.url}/v1", "m"), new=TOKENS, loads=(load,), runs=RUNS, between=between)
        count = RUNS * (load.concurrency or 1)
        counted, in_turn = one.bodies[-count:], other.bodies
    assert asked == [(cell, number) for number in range(RUNS)], "not between what warms up"
    assert sorted(map(said, counted)) == sorted(map(said, in_turn))
    assert len({said(body) for body in in_turn}) == count


def test_who_ends_it_between_the_last_two_is_heard() -> None:
    pressed: list[int] = []
    with bench_server(tokens=TOKENS) as server:

        def between(now: BenchCell, number: int) -> None:
            pressed.append(number)
            if number == RUNS - 1:
                signal.raise_signal(signal.SIGINT)

        run = run_bench(Target(f"{server.url}/v1", "m"), new=TOKENS, runs=RUNS, between=between)
    assert pressed == list(range(RUNS))
    assert (run.is_whole, run.cells[0].ended) == (False, "interrupted")


def test_each_time_it_is_met_an_engines_cache_knows_nothing_of_what_was_asked() -> None:
    with bench_server(tokens=TOKENS) as server:
        for _ in range(2):
            with ExitStack() as stack:
                take_turns(Target(f"{server.url}/v1", "m"), "vllm", make_cell(new_tokens=TOKENS), 1, stack).play(0)
    salts = {str(body["cache_salt"]) for body in server.bodies}
    assert len(salts) == len(server.bodies) == 2
    assert len({said(body) for body in server.bodies}) == 1


def said(body: dict[str, object]) -> str:
    """What was asked."""
    return json.dumps(body["messages"])


def test_what_failed_is_told_as_such() -> None:
    with bench_server(refuses(500, "oops"), tokens=TOKENS) as server, ExitStack() as stack:
        turns = take_turns(Target(f"{server.url}/v1", "m"), None, make_cell(new_tokens=TOKENS), 1, stack)
        assert [bool(turns.play(number).requests[0].error) for number in range(2)] == [True, False]
