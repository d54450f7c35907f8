"""What is measured of a server that knows the truth: counts exactly, and times in their order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from benchmarks.bench_accuracy.serving import call, truth_server
from benchmarks.bench_accuracy.truth_server import MODEL

from bench_seen import CLOSED, figures, make_cell, run_bench
from stoker.bench.cell import MOST_BUDGETS
from stoker.bench.composing import Composer, Order
from stoker.bench.measures import Measure
from stoker.bench.server import meet
from stoker.errors import Refused
from stoker.records import BenchLoad, BenchRun, BenchSlo, CellResult, RequestSeen, Target
from support import fails


@pytest.fixture(scope="module")
def truth() -> Iterator[str]:
    """A server that knows the truth."""
    with truth_server() as url:
        yield url


FAST = {"ttft_ms": 5.0, "step_ms": 1.0}


def measured(truth: str, schedule: dict[str, Any] | None = None, **asked: Any) -> BenchRun:
    """Measures the server on a schedule."""
    call(f"{truth}/truth/schedule", {**FAST, **(schedule or {})})
    return run_bench(Target(f"{truth}/v1", MODEL), **asked)


def requests(run: BenchRun) -> list[RequestSeen]:
    """Returns all requests of the first cell."""
    return [one for repeat in run.cells[0].repeats for one in repeat.requests]


def test_a_cell_has_its_repeats_its_warm_up_and_no_warnings(truth: str) -> None:
    run = measured(truth)
    [cell] = run.cells
    assert (run.is_whole, run.subject.engine, cell.asked, cell.failed, cell.ended) == (True, "vllm", 2, 0, "runs")
    assert (cell.counted_by, cell.warnings, cell.errors) == (("usage",), (), ())
    assert cell.warmups >= 1
    assert [(one.prompt_tokens, one.output_tokens, one.chunks) for one in requests(run)] == [(128, 12, 12)] * 2
    assert all(sum(write.tokens or 0 for write in one.writes) == 12 for one in requests(run))
    assert all(one.first_chunk_s <= one.ttft_s < one.last_token_s for one in requests(run))  # type: ignore[operator]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_the_first_token_may_be_a_thought(truth: str, field: str) -> None:
    assert figures(measured(truth, {"field": field}))["ttft_s"] >= 0.005


def test_an_early_role_chunk_is_no_token(truth: str) -> None:
    found = requests(measured(truth, {"ttft_ms": 80.0, "role_ms": 0.0}))
    assert all(one.ttft_s - one.first_chunk_s > 0.03 for one in found)  # type: ignore[operator]


@pytest.mark.parametrize(("ids", "usage"), [(True, True), (False, True), (False, False)])
def test_a_first_burst_is_left_out_whoever_counts(truth: str, ids: bool, usage: bool) -> None:
    run = measured(truth, {"first_burst": 4, "burst": 4, "ids": ids, "usage": usage, "step_ms": 20.0})
    # A multiple: on a busy machine a read brings what two writes wrote.
    assert all((one.first_write_tokens or 1) % 4 == 0 for one in requests(run))
    assert all(write.tokens == 4 * write.chunks for one in requests(run) for write in one.writes)
    assert run.cells[0].counted_by == (("usage",) if usage else ("length",))
    assert figures(run)["prefill_tps"] > 0  # counted before, where the stream does not tell


def test_a_proxy_that_gathers_chunks_is_seen_as_it_writes(truth: str) -> None:
    run = measured(truth, {"coalesce": 4, "step_ms": 10.0})
    assert all((write.tokens or 1) % 4 == 0 for one in requests(run) for write in one.writes)


def test_a_tail_is_no_token(truth: str) -> None:
    found = requests(measured(truth, {"tail_ms": 60.0}))
    assert all(one.done_s - one.last_token_s > 0.03 for one in found)  # type: ignore[operator]


def test_accept_figures_are_the_counters(truth: str) -> None:
    run = measured(truth, {"burst": 3, "drafts": 3, "step_ms": 5.0}, new=13)
    seen = run.cells[0].speculation
    assert seen is not None
    assert (seen.source, seen.draft_tokens, seen.accepted_tokens, seen.verify_steps) == ("counters of vllm", 24, 16, 8)
    assert seen.accept_rate == pytest.approx(2 / 3)
    assert seen.accept_length == pytest.approx(3.0)
    assert figures(run)["accept_length"] == pytest.approx(3.0)


def test_many_at_once_are_all_under_way(truth: str) -> None:
    run = measured(truth, {"ttft_ms": 60.0}, loads=(BenchLoad("closed", 8),), requests=12)
    for repeat in run.cells[0].repeats:
        begun = sorted(one.sent_at_s for one in repeat.requests)
        ended = sorted(one.sent_at_s + (one.done_s or 0.0) for one in repeat.requests)
        assert len(begun) == 12
        assert begun[7] < ended[0] <= begun[8]


def test_open_arrivals_are_sent_when_they_are_due(truth: str) -> None:
    run = measured(truth, loads=(BenchLoad("poisson", None, 50.0),), requests=8, runs=1)
    found = requests(run)
    assert len(found) == 8
    assert all(one.due_at_s is not None and one.sent_at_s >= one.due_at_s for one in found)


def test_a_talk_goes_on_with_what_was_answered(truth: str) -> None:
    run = measured(truth, turns=3, runs=1)
    found = sorted(requests(run), key=lambda one: one.turn)
    assert [one.turn for one in found] == [0, 1, 2]
    lengths = [one.prompt_tokens or 0 for one in found]
    assert lengths[0] == 128
    # It cannot count without a trial, so later turns have as many words as the first one, and about as many tokens.
    assert all(after - before >= 0.8 * 128 + 12 for before, after in pairwise(lengths))


def test_depth_is_a_past_and_counts_with_the_prompt(truth: str) -> None:
    run = measured(truth, depths=(256,), runs=1)
    assert [one.prompt_tokens for one in requests(run)] == [256 + 128]


def test_no_two_prompts_begin_alike_unless_they_shall(truth: str) -> None:
    server = meet(Target(f"{truth}/v1", MODEL))
    for shares_prefix, wanted in ((False, 6), (True, 1)):
        cell = make_cell(shares_prefix=shares_prefix)
        jobs = Composer(server, Measure(server), cell, 1, {}).jobs([Order(128, 8)] * 6, "repeat 0")
        bodies = [json.loads(job.request.partition(b"\r\n\r\n")[2]) for job in jobs]
        assert len({body["messages"][0]["content"][:20] for body in bodies}) == wanted
    server.close()


def texts_of(composer: Composer, repeat: str, many: int = 12) -> list[str]:
    """Returns the prompts of a repeat."""
    jobs = composer.jobs([Order(128, 8)] * many, repeat)
    return [json.loads(job.request.partition(b"\r\n\r\n")[2])["messages"][0]["content"] for job in jobs]


@pytest.mark.parametrize("shares_prefix", [False, True])
def test_a_warm_up_looks_at_one_text_and_shares_the_prefix_that_is_measured(truth: str, shares_prefix: bool) -> None:
    looks: list[str] = []

    def count(text: str) -> int:
        looks.append(text)
        return len(text.split())

    server = meet(Target(f"{truth}/v1", MODEL))
    measure = Measure(server, count)
    composer = Composer(server, measure, make_cell(shares_prefix=shares_prefix), 1, {})
    warm = composer.for_warmup()
    first = texts_of(warm, "warm-up 1")
    looks.clear()
    again = texts_of(warm, "warm-up 2")
    looked = len(looks)
    measured_next = texts_of(composer, "repeat 0")
    server.close()
    assert {len(text.split()) for text in (*first, *again)} == {len(measured_next[0].split())}
    if shares_prefix:
        assert {*first, *again} == set(measured_next)
    else:
        assert looked == 0
        assert len({*first, *again, *measured_next}) == 36


def prompts_of(truth: str, *repeats: str, seed: int = 1, **changes: Any) -> list[str]:
    """Returns the last of each repeat's prompts of a cell."""
    server = meet(Target(f"{truth}/v1", MODEL))
    composer = Composer(server, Measure(server), make_cell(**changes), seed, {})
    jobs = [composer.jobs([Order(128, 8)] * 2, repeat)[-1] for repeat in repeats]
    server.close()
    return [json.loads(job.request.partition(b"\r\n\r\n")[2])["messages"][0]["content"] for job in jobs]


def test_prompts_depend_on_seed_cell_and_repeat_alone(truth: str) -> None:
    after_one_warmup = prompts_of(truth, "warm-up 1", "repeat 0", "repeat 1")
    after_none = prompts_of(truth, "repeat 0", "repeat 1")
    assert after_one_warmup[1:] == after_none
    assert len(set(after_one_warmup)) == 3
    assert prompts_of(truth, "repeat 0", seed=2) != after_none[:1]


def test_cells_that_differ_in_their_load_alone_have_prompts_of_their_own(truth: str) -> None:
    one, eight = (prompts_of(truth, "repeat 0", load=BenchLoad("closed", load))[0] for load in (1, 8))
    assert one[:20] != eight[:20], "the second would find the prompts of the first in the engine's cache"


def test_a_run_finds_nothing_in_a_prefix_cache_of_one_with_the_same_seed(truth: str) -> None:
    server = meet(Target(f"{truth}/v1", MODEL))
    salts = {str(server.salt()["cache_salt"]) for _ in range(3)}
    assert len(salts) == 3
    assert server._replace(engine="llamacpp").salt() == {}, "which is told to keep no prompt"
    server.close()


def test_a_soak_has_a_series_with_what_was_seen_beside_it(truth: str) -> None:
    run = measured(truth, {"burst": 3, "drafts": 3}, loads=(BenchLoad("closed", 2),), soak_s=2.5, new=13)
    [cell] = run.cells
    assert cell.ended == "budget"
    assert len(cell.series) >= 2
    assert sum(point.answered for point in cell.series) == (cell.asked or 0) > 10
    assert cell.series[0].accept_length == pytest.approx(3.0, rel=0.05)
    assert cell.series[0].available_bytes


def test_precision_or_the_budget_ends_a_cell(truth: str) -> None:
    assert measured(truth, runs=None, precision=0.9).cells[0].ended == "precision"
    assert measured(truth, runs=None, precision=1e-9, budget_s=0.3).cells[0].ended == "budget"


def test_goodput_counts_what_kept_its_limits(truth: str) -> None:
    assert figures(measured(truth, slo=BenchSlo(ttft_s=5.0)))["goodput_share"] == 1.0
    assert figures(measured(truth, slo=BenchSlo(ttft_s=0.001)))["goodput_share"] == 0.0


def test_lengths_that_cannot_be_are_refused_before_anything_is_measured(truth: str) -> None:
    with fails(Refused, "do not fit into its context", "131072"):
        measured(truth, prompts=(131072,))
    with fails(Refused, "is too short"):
        measured(truth, prompts=(8,))
    assert all(one["tokens"] != 12 for one in call(f"{truth}/truth/requests"))


def test_the_client_and_the_machine_are_told(truth: str) -> None:
    [cell] = measured(truth, loads=(CLOSED,)).cells
    assert cell.client is not None
    assert cell.client.stamps == "kernel"
    assert 0 <= cell.client.busy <= 1
    assert cell.machine is not None
    assert cell.machine.available_low_bytes
    assert cell.machine.engine_cores is not None


def test_what_is_in_doubt_is_measured_on_until_it_is_not(truth: str) -> None:
    seen: list[int] = []

    def goes_on(result: CellResult) -> bool:
        seen.append(len(result.repeats))
        return len(result.repeats) < 9

    [cell] = measured(truth, runs=None, precision=10.0, budget_s=60.0, goes_on=goes_on).cells
    assert (len(cell.repeats), cell.ended) == (9, "precision")
    assert seen == list(range(seen[0], 10)), "it is asked after each repeat, once enough is known"


def test_a_doubt_that_never_ends_is_ended_by_three_budgets(truth: str) -> None:
    [cell] = measured(truth, runs=None, precision=0.0, budget_s=0.2, goes_on=lambda _: True).cells
    assert cell.ended == "budget"
    assert sum(one.took_s for one in cell.repeats) <= (MOST_BUDGETS + 1) * 0.2
