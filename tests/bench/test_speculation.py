"""What counters and answers tell of speculation, by values that were worked out by hand."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stoker.bench.events import Chunk, Stream
from stoker.bench.speculation import join_speculation, speculation_between, speculation_told, went_back
from stoker.counters import Counters, read_counters

VLLM = """
vllm:generation_tokens_total{{engine="0"}} {generated}
vllm:generation_tokens_total{{engine="1"}} 10
vllm:spec_decode_num_drafts_total{{engine="0"}} {drafts}
vllm:spec_decode_num_draft_tokens_total{{engine="0"}} {drafted}
vllm:spec_decode_num_accepted_tokens_total{{engine="0"}} {accepted}
vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine="0",position="0"}} {first}
vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine="0",position="1"}} {second}
"""


def page(text: str, **numbers: int) -> Counters:
    """Returns what a page of metrics says."""
    found = read_counters(text.format(**numbers))
    assert found is not None
    return found


def test_vllms_counters_make_rate_length_and_positions() -> None:
    before = page(VLLM, generated=100, drafts=10, drafted=20, accepted=10, first=7, second=3)
    after = page(VLLM, generated=400, drafts=110, drafted=220, accepted=140, first=97, second=43)
    assert after.totals["generated_tokens_total"] == 410  # of both engines
    seen = speculation_between(before, after)
    assert seen is not None
    assert (seen.draft_tokens, seen.accepted_tokens, seen.verify_steps) == (200, 130, 100)
    assert (seen.accept_rate, seen.accept_length, seen.accept_rate_by_position) == (0.65, 2.3, (0.9, 0.4))


def test_sglangs_counters_make_a_length_and_no_rate() -> None:
    text = "sglang:generation_tokens_total {generated}\nsglang:spec_verify_calls_total {calls}\n"
    seen = speculation_between(page(text, generated=0, calls=0), page(text, generated=260, calls=100))
    assert seen is not None
    assert (seen.source, seen.verify_steps, seen.accept_length, seen.accept_rate) == ("counters of sglang", 100, 2.6, None)


def test_a_counter_that_went_back_tells_nothing() -> None:
    before = page(VLLM, generated=100, drafts=10, drafted=20, accepted=10, first=7, second=3)
    after = page(VLLM, generated=120, drafts=1, drafted=2, accepted=1, first=1, second=0)
    assert went_back(before, after)
    assert speculation_between(before, after) is None


def test_an_engine_that_never_drafted_has_no_figures_and_one_that_paused_has_zeros() -> None:
    idle = page(VLLM, generated=0, drafts=0, drafted=0, accepted=0, first=0, second=0)
    busy = page(VLLM, generated=50, drafts=10, drafted=20, accepted=10, first=7, second=3)
    assert speculation_between(idle, idle) is None
    paused = speculation_between(busy, busy)
    assert paused is not None
    assert (paused.draft_tokens, paused.accept_rate, paused.accept_length) == (0, None, None)


def stream(**chunk: Any) -> Stream:
    """Returns a stream whose last chunk says this."""
    found = Stream()
    found.add(1.0, msgspec.convert(chunk, Chunk))
    return found


SPOKEN = {
    "vllm": ("metrics", "speculative_decoding", ("num_draft_tokens", "num_accepted_draft_tokens", "num_spec_steps")),
    "sglang": ("sglext", "spec_tokens_details", ("spec_num_proposed_drafts", "spec_num_correct_drafts", "spec_verify_ct")),
}
TOLD: dict[str, tuple[dict[str, Any], float | None]] = {
    engine: ({field: {part: dict(zip(names, (30, 20, 10), strict=True))}}, 3.0)
    for engine, (field, part, names) in SPOKEN.items()
}
TOLD["llamacpp"] = ({"timings": {"draft_n": 30, "draft_n_accepted": 20}}, None)


@pytest.mark.parametrize("engine", TOLD)
def test_answers_that_tell_are_added_up(engine: str) -> None:
    chunk, length = TOLD[engine]
    seen = speculation_told([stream(**chunk), stream(**chunk)])
    assert seen is not None
    assert (seen.draft_tokens, seen.accepted_tokens, seen.accept_length) == (60, 40, length)
    assert seen.accept_rate == 2 / 3


def test_an_answer_that_does_not_tell_makes_the_sum_unknown_unless_it_is_llama_cpps() -> None:
    assert speculation_told([stream(**TOLD["vllm"][0]), stream()]) is None
    seen = speculation_told([stream(**TOLD["llamacpp"][0]), stream(timings={"predicted_n": 3})])
    assert seen is not None
    assert seen.draft_tokens == 30


def test_repeats_are_added_up_and_not_averaged() -> None:
    before = page(VLLM, generated=0, drafts=0, drafted=0, accepted=0, first=0, second=0)
    middle = page(VLLM, generated=9, drafts=10, drafted=20, accepted=20, first=10, second=10)
    after = page(VLLM, generated=99, drafts=100, drafted=200, accepted=20, first=10, second=10)
    seen = join_speculation([speculation_between(before, middle), speculation_between(middle, after)])
    assert seen is not None
    assert (seen.accept_rate, seen.accept_length) == (0.1, 1.2)
    assert list(seen.accept_rate_by_position or ()) == pytest.approx([0.1, 0.1])
    assert join_speculation([speculation_between(before, middle), None]) is None
