"""What a user says in two ways, in numbers that are none, or in flags that are not theirs to set."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known import EAGLE, MISTRAL, NIGHTLY, QWEN, make_checkpoint, report_of, settings_of

from stoker.errors import Refused, StokerError
from stoker.facts.engine.catalogs import find_catalog
from support import fails

VLLM: dict[str, Any] = {"version": "0.26.0", "near": find_catalog("vllm", "0.26.0")}


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"context": 4096, "flags": {"max-model-len": 65536}}, ["`context` is 4,096", "say it once"]),
        ({"memory_share": 0.5, "flags": {"gpu-memory-utilization": 0.8}}, ["`memory_share` is 0.5", "say it once"]),
        ({"parallel": 2, "flags": {"max-num-seqs": 64}}, ["`parallel` is 2"]),
        ({"speculation": "off", "flags": {"speculative-config": "{}"}}, ["says twice how to draft"]),
        ({"flags": {"model": "/other"}}, ["Stoker says it itself, from `model`"]),
        ({"flags": {"served_model_name": "x"}}, ["from `served_name`"]),
        ({"flags": {"port": 31000}}, ["set `port`"]),
        ({"flags": {"host": "0.0.0.0"}}, ["through the gateway alone"]),
        ({"flags": {"api-key": "secret"}}, ["leave it out"]),
        ({"flags": {"max-num-batched-tokens": "x"}}, ["has to be a whole number"]),
        ({"flags": {"max-num-batched-tokens": (1, 2)}}, ["has to be a whole number"]),
        ({"flags": {"max-num-batched-tokens": True}}, ["has to be a whole number"]),
        ({"flags": {"max-num-seqs": float("nan")}}, ["has to be a whole number"]),
        ({"flags": {"max-num-seqs": float("inf")}}, ["has to be a whole number"]),
        ({"flags": {"max-num-seqs": -4}}, ["has to be a whole number"]),
        ({"flags": {"max-model-len": "1e400"}}, ["has to be a whole number"]),
        ({"flags": {"max-model-len": -1}}, ["has to be a whole number"]),
        ({"flags": {"max-model-len": 2**63 - 1}}, ["has to be a whole number"]),
        ({"flags": {"gpu-memory-utilization": "nan"}}, ["between 0 and 1"]),
        ({"flags": {"gpu-memory-utilization": 1.5}}, ["between 0 and 1"]),
        ({"flags": {"a b": 1}}, ["cannot be a flag"]),
        ({"flags": {"--": 1}}, ["cannot be a flag"]),
        ({"flags": {"\u00e9": 1}}, ["cannot be a flag"]),
        ({"context": 2_000_000}, ["was trained for 1,048,576"]),
        ({"claim_gib": 0}, ["`claim_gib` is 0"]),
    ],
)
def test_a_wish_that_says_two_things_or_none_is_refused(changes: dict[str, Any], parts: list[str]) -> None:
    with fails(Refused, *parts):
        report_of("vllm", **changes)


def test_a_number_may_be_written_as_engines_take_it() -> None:
    said = settings_of(
        report_of("vllm", flags={"max-model-len": "64k", "max-num-seqs": "8", "max-num-batched-tokens": "4K"})
    )
    assert (said["--max-model-len"], said["--max-num-seqs"], said["--max-num-batched-tokens"]) == (64_000, 8, 4096)


def test_saying_the_same_twice_is_no_contradiction() -> None:
    assert settings_of(report_of("vllm", context=8192, flags={"max-model-len": 8192}))["--max-model-len"] == 8192


@pytest.mark.parametrize("changes", [{"memory_share": 0.88}, {"flags": {"mem-fraction-static": 0.88}}])
def test_what_the_user_chose_is_refused_and_not_changed_in_silence(changes: dict[str, Any]) -> None:
    report = report_of("sglang", draft=EAGLE, image=NIGHTLY, **changes)
    assert settings_of(report)["--mem-fraction-static"] == 0.88
    assert "sglang-mem-fraction-ceiling-085" in {one.rule for one in report.findings if one.level == "forbid"}


def test_a_context_that_the_user_chose_stays_whatever_a_rule_prefers() -> None:
    assert settings_of(report_of("vllm", context=300_000, parallel=1))["--max-model-len"] == 300_000


def test_a_false_switch_is_said_by_its_opposite_or_refused() -> None:
    said = settings_of(report_of("vllm", flags={"enable-prefix-caching": False}, **VLLM))
    assert said["--no-enable-prefix-caching"] is True
    with fails(Refused, "no word of its own"):
        report_of("vllm", flags={"enable-prefix-caching": False})


def test_flags_that_the_version_does_not_know_are_refused_in_a_plan_too() -> None:
    report = report_of("vllm", flags={"max-modle-len": 4}, **VLLM)
    [finding] = [one for one in report.findings if one.rule == "flag-unknown"]
    assert finding.level == "forbid"
    assert "--max-model-len" in finding.fix


def test_a_short_flag_is_known_by_its_long_name() -> None:
    assert settings_of(report_of("vllm", flags={"tp": 2}, **VLLM))["--tensor-parallel-size"] == 2


def test_a_build_that_dies_with_a_trained_draft_gets_lookup_unless_asked_otherwise() -> None:
    image = "scitrera/dgx-spark-sglang:0.5.12"
    assert settings_of(report_of("sglang", QWEN, image=image))["--speculative-algorithm"] == "NGRAM"
    assert settings_of(report_of("sglang", QWEN, image=image, speculation="mtp"))["--speculative-algorithm"] == "EAGLE"


def test_a_gemma_assistant_drafts_by_mtp_and_takes_no_cache_of_its_own() -> None:
    gemma = make_checkpoint(name="gemma-4-26B-A4B-it-FP8-Dynamic", repository="RedHatAI/gemma-4-26B-A4B-it-FP8-Dynamic")
    assistant = make_checkpoint(
        name="gemma-4-26B-A4B-it-assistant", repository="google/gemma-4-26B-A4B-it-assistant", path="/m/assistant",
        architecture="Gemma4AssistantForCausalLM", file_bytes=10**9,
    )  # fmt: skip
    report = report_of("vllm", gemma, assistant)
    config = str(settings_of(report)["--speculative-config"])
    assert '"method":"mtp"' in config
    assert '"model":"/m/assistant"' in config
    alone, both = report_of("vllm", gemma).budget, report.budget
    assert alone is not None
    assert both is not None
    cache = [next(line.need_bytes for line in one.lines if line.name == "KV cache") for one in (alone, both)]
    assert abs(cache[0] - cache[1]) < 3 * 10**9


def test_a_declared_claim_takes_the_place_of_the_budget() -> None:
    report = report_of("vllm", claim_gib=103.4)
    assert report.budget is not None
    assert [line.name for line in report.budget.lines] == ["declared"]
    assert report.plan.memory_need_bytes == report.budget.total_bytes == int(103.4 * 1024**3)


values = st.one_of(
    st.integers(), st.floats(), st.booleans(), st.text(max_size=8), st.lists(st.integers(), max_size=2).map(tuple)
)
names = st.sampled_from(
    ["max-model-len", "max-num-seqs", "gpu-memory-utilization", "max-num-batched-tokens", "seed", "kv-cache-dtype"]
)


@settings(max_examples=200)
@given(st.dictionaries(names | st.text(max_size=6), values, max_size=3))
def test_any_flags_give_a_plan_or_a_sentence(flags: dict[str, Any]) -> None:
    try:
        report = report_of("vllm", MISTRAL, flags=flags, **VLLM)
    except StokerError as problem:
        assert problem.what
        return
    assert report.budget is not None
    assert report.budget.total_bytes > 0
