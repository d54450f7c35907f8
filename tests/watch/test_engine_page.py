"""Engines' own metrics: the same values under the same names for all of them, and nothing believed that cannot be."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.engines import find, names
from stoker.watch.engine_page import NO_NAMES, NOT_A_NUMBER, read_page
from stoker.watch.engine_series import ENGINE_SERIES
from stoker.watch.page_check import IMPOSSIBLE, VANISHED, WENT_BACK, Known, find_problems, learn

PAGES = Path(__file__).parent / "pages"
SERIES = {series.name for series in ENGINE_SERIES}
LABELS = '{engine="0",model_name="m"}'


def vllm(**values: object) -> bytes:
    return "".join(f"vllm:{name}{LABELS} {value}\n" for name, value in values.items()).encode()


def test_llama_cpp_tells_its_drafts() -> None:
    page = read_page("llamacpp", (PAGES / "llamacpp-b11549-draft.txt").read_bytes())
    assert page.problems == frozenset() == find_problems(None, page)
    told = ("draft_tokens", "accepted_tokens", "verify_steps", "generated_tokens", "requests_running")
    assert [page.values[f"stoker_engine_{name}"] for name in told] == [191, 191, 64, 256, 0]


def test_sglang_tells_verify_calls_and_its_last_interval() -> None:
    page = read_page("sglang", (PAGES / "sglang-0.5.16-standalone.txt").read_bytes())
    assert page.problems == frozenset() == find_problems(None, page)
    told = ("generated_tokens", "verify_steps", "tokens_verified_per_step", "accept_rate", "accept_length")
    assert [page.values[f"stoker_engine_{name}"] for name in told] == [1288, 510, 4, 1, 4]
    gaps = page.histograms["stoker_engine_inter_token_seconds"]
    assert gaps.buckets[-1] == (math.inf, 980) and gaps.total == pytest.approx(0.839446)


def test_ranks_are_added_up_and_shares_are_not() -> None:
    two = b"".join(
        b'vllm:num_requests_running{engine="%d"} 3\nvllm:kv_cache_usage_perc{engine="%d"} 0.%d\n' % (rank, rank, 4 + rank)
        for rank in range(2)
    )
    values = read_page("vllm", two).values
    assert values == {"stoker_engine_requests_running": 6, "stoker_engine_cache_used_ratio": 0.5}


def test_only_the_named_label_counts_as_aborted() -> None:
    page = read_page(
        "vllm",
        b'vllm:request_success_total{finished_reason="stop"} 7\nvllm:request_success_total{finished_reason="abort"} 2\n',
    )
    assert page.values == {"stoker_engine_requests": 9, "stoker_engine_requests_aborted": 2}


def test_an_older_name_is_read_where_the_newer_one_is_not_there() -> None:
    older, newer = b"vllm:gpu_cache_usage_perc 0.7\n", b"vllm:kv_cache_usage_perc 0.2\n"
    assert read_page("vllm", older).values == {"stoker_engine_cache_used_ratio": 0.7}
    assert read_page("vllm", older + newer).values == {"stoker_engine_cache_used_ratio": 0.2}


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "1e300", "", "many", "0x10"])
def test_what_is_no_amount_is_left_out_and_said(value: str) -> None:
    page = read_page("vllm", vllm(generation_tokens_total=value or "?", num_requests_running=1))
    assert page.values == {"stoker_engine_requests_running": 1}
    assert page.problems == {NOT_A_NUMBER}


@pytest.mark.parametrize("text", [b"", b"\xff\xfe\x00", b"<html>502</html>", b"vllm:other 1\n", b"# HELP vllm:x\n" * 1000])
def test_a_page_of_something_else_says_nothing(text: bytes) -> None:
    page = read_page("vllm", text)
    assert not page.values and page.problems == {NO_NAMES}


def test_a_page_is_read_whole_however_it_is_cut_into_pieces() -> None:
    lines = b"".join(b'vllm:generation_tokens_total{engine="%d",pad="%s"} 1\n' % (rank, b"x" * 97) for rank in range(5000))
    assert read_page("vllm", lines).values == {"stoker_engine_generated_tokens": 5000}


def test_a_histogram_without_its_last_bucket_is_left_out() -> None:
    name = "vllm:inter_token_latency_seconds"
    assert not read_page("vllm", f'{name}_bucket{{le="0.1"}} 4\n{name}_sum 1\n'.encode()).histograms


@pytest.mark.parametrize(
    "text",
    [
        vllm(spec_decode_num_draft_tokens_total=10, spec_decode_num_accepted_tokens_total=11),
        vllm(kv_cache_usage_perc=47),
        b'vllm:inter_token_latency_seconds_bucket{le="0.1"} 4\nvllm:inter_token_latency_seconds_bucket{le="+Inf"} 3\n',
    ],
)
def test_what_cannot_be_is_said(text: bytes) -> None:
    assert IMPOSSIBLE in find_problems(None, read_page("vllm", text))


def seen(*texts: bytes) -> list[frozenset[str]]:
    """Returns what is wrong with each of several pages of one process."""
    known: Known | None = None
    found = []
    for text in texts:
        page = read_page("vllm", text)
        found.append(find_problems(known, page))
        known = learn(known, page, found[-1])
    return found


def test_a_counter_that_went_back_in_one_process_is_not_forgotten() -> None:
    pages = [vllm(generation_tokens_total=count) for count in (5, 9, 3, 12)]
    assert seen(*pages) == [frozenset(), frozenset(), {WENT_BACK}, {WENT_BACK}]


def test_a_name_that_vanished_is_missed_until_it_is_back() -> None:
    whole = vllm(generation_tokens_total=5, num_requests_running=1)
    assert seen(whole, vllm(num_requests_running=1), vllm(num_requests_running=1), whole) == [
        frozenset(), {VANISHED}, {VANISHED}, frozenset(),
    ]  # fmt: skip


def test_a_renamed_page_says_that_its_names_are_unknown() -> None:
    assert seen(vllm(generation_tokens_total=5), b"vllm:tokens_made_total 6\n")[1] == {NO_NAMES, VANISHED}


@pytest.mark.parametrize("engine", names())
@given(text=st.binary(max_size=4000), name=st.data())
def test_no_page_breaks_the_reader(engine: str, text: bytes, name: st.DataObject) -> None:
    known = name.draw(st.sampled_from(sorted(find(engine).metrics.values()))).partition("{")[0].encode()
    page = read_page(engine, text + b"\n" + known + text)
    assert page.values.keys() | page.histograms.keys() <= SERIES
    assert all(math.isfinite(value) and value >= 0 for value in page.values.values())
    find_problems(learn(None, page, frozenset()), page)
