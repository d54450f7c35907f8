"""Planning how tokens are drafted: trees, lookup lengths, tiers and sizes, in the words of each engine and version."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from known import EAGLE, QWEN, make_checkpoint, report_of, settings_of

from stoker.errors import Refused
from stoker.facts.engine.catalogs import find_catalog
from stoker.plan.choose import choose_plan
from stoker.plan.wishes import USER, tree_tokens
from stoker.records import Way, Wish
from support import fails

TREE: dict[str, Any] = {"speculation": "eagle", "draft_tokens": 15, "draft_steps": 5, "draft_topk": 4}
GGUF = make_checkpoint(path="/models/small.gguf", format="gguf", file_bytes=8 * 10**6, context_tokens=8192)


def sglang(version: str, **changes: Any) -> dict[str, Any]:
    """The settings of a plan for a version of SGLang whose flags are known."""
    return settings_of(report_of("sglang", draft=EAGLE, version=version, near=find_catalog("sglang", version), **changes))


def vllm(version: str = "0.33.0", **changes: Any) -> Any:
    """What vLLM is told of speculation."""
    said = settings_of(report_of("vllm", QWEN, version=version, near=find_catalog("vllm", version), **changes))
    return json.loads(str(said["--speculative-config"]))


def test_a_tree_is_said_by_steps_topk_and_the_tokens_it_verifies_with_the_models_own_one() -> None:
    said = sglang("0.5.23", **TREE)
    names = ("--speculative-num-steps", "--speculative-eagle-topk", "--speculative-num-draft-tokens")
    assert [said[name] for name in names] == [5, 4, 16]


def test_a_chain_is_a_tree_of_one_branch() -> None:
    chain = sglang("0.5.23", speculation="eagle", draft_tokens=5)
    same = sglang("0.5.23", speculation="eagle", draft_tokens=5, draft_steps=5, draft_topk=1)
    assert {name: value for name, value in chain.items() if "specul" in name} == {
        name: value for name, value in same.items() if "specul" in name
    }


def test_each_number_of_a_tree_says_that_the_user_chose_it() -> None:
    report = report_of("sglang", draft=EAGLE, **TREE)
    chosen = {one.name for one in report.plan.settings if one.because == USER}
    assert {"--speculative-num-steps", "--speculative-eagle-topk", "--speculative-num-draft-tokens"} <= chosen


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"draft_steps": 5, "draft_tokens": 15}, ["say a tree together"]),
        ({"draft_topk": 4, "draft_tokens": 15}, ["say a tree together"]),
        ({"draft_steps": 3, "draft_topk": 2, "draft_tokens": 15}, ["holds 3 to 10"]),
        ({"draft_steps": 5, "draft_topk": 4, "draft_tokens": 4}, ["holds 5 to 68"]),
        ({"lookup_max": 4}, ["`lookup_max` is set, but `speculation` is 'eagle'"]),
        ({"draft_tiers": ((1, 8, 0),)}, ["`draft_tiers` drafts nothing at any load"]),
        ({"draft_tiers": ((1, 8, 2),), **TREE}, ["`draft_tiers` is set, and a tree beside it"]),
        ({"draft_tiers": ((1, 8, 2),), "draft_tokens": 6}, ["`draft_tokens` is 6, and `draft_tiers` drafts 2 at most"]),
    ],
)
def test_numbers_that_do_not_fit_each_other_are_refused(changes: dict[str, Any], parts: list[str]) -> None:
    with fails(Refused, *parts):
        report_of("sglang", draft=EAGLE, **{"speculation": "eagle", **changes})


def test_a_tree_holds_what_each_step_adds_to_each_branch() -> None:
    assert [tree_tokens(steps, topk) for steps, topk in ((1, 4), (2, 4), (5, 1), (5, 8))] == [4, 20, 5, 264]


def test_the_versions_that_take_one_branch_alone_refuse_a_tree() -> None:
    report = report_of(
        "sglang", draft=EAGLE, version="0.5.10", environment={"SGLANG_ENABLE_SPEC_V2": "True"}, **TREE
    )  # fmt: skip
    assert "sglang-spec-v2-topk1-only" in {one.rule for one in report.findings if one.level == "forbid"}


@pytest.mark.parametrize("changes", [{"draft_steps": 3, "draft_topk": 2, "draft_tokens": 7}, {"draft_adaptive": True}])
def test_vllm_has_no_trees_and_adapts_nothing_by_itself(changes: dict[str, Any]) -> None:
    with fails(Refused, "vllm has nothing like it"):
        report_of("vllm", QWEN, speculation="mtp", **changes)


def test_what_sglang_adapts_itself_is_said_without_numbers_where_the_version_knows_it() -> None:
    said = sglang("0.5.16", speculation="eagle", draft_adaptive=True)
    assert said["--speculative-adaptive"] is True
    assert said["--speculative-eagle-topk"] == 1
    assert "--speculative-num-draft-tokens" not in said
    with fails(Refused, "0.5.9 has no --speculative-adaptive"):
        sglang("0.5.9", speculation="eagle", draft_adaptive=True)


def test_lookup_lengths_are_said_in_the_words_of_the_version() -> None:
    new = sglang("0.5.23", speculation="ngram", lookup_max=6, draft_topk=2)
    assert new["--speculative-ngram-max-trie-depth"] == 6
    assert new["--speculative-ngram-max-bfs-breadth"] == 2
    old = sglang("0.5.9", speculation="ngram", lookup_min=2, lookup_max=6)
    assert old["--speculative-ngram-min-match-window-size"] == 2
    assert old["--speculative-ngram-max-match-window-size"] == 6
    with fails(Refused, "has no --speculative-ngram-min-match-window-size", "`lookup_min`"):
        sglang("0.5.23", speculation="ngram", lookup_min=2)


def test_vllm_is_told_least_and_most_of_a_lookup() -> None:
    told = vllm(speculation="ngram", lookup_min=2, lookup_max=8, draft_tokens=6)
    assert (told["prompt_lookup_min"], told["prompt_lookup_max"], told["num_speculative_tokens"]) == (2, 8, 6)
    assert vllm(speculation="ngram") == {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4}
    assert vllm(speculation="ngram", lookup_min=3)["prompt_lookup_max"] == 3
    with fails(Refused, "`lookup_min` is 9"):
        vllm(speculation="ngram", lookup_min=9, lookup_max=8)


def test_tiers_are_told_to_the_vllm_that_knows_them() -> None:
    told = vllm(speculation="mtp", draft_tiers=((1, 2, 4), (3, 64, 1)))
    assert told["num_speculative_tokens_per_batch_size"] == [[1, 2, 4], [3, 64, 1]]
    assert told["num_speculative_tokens"] == 4
    with fails(Refused, "vllm 0.20.2 does not know `draft_tiers`"):
        vllm("0.20.2", speculation="mtp", draft_tiers=((1, 2, 4),))


def test_tiers_are_told_to_the_sglang_that_knows_them_as_the_text_of_a_file() -> None:
    told = sglang("0.5.23", speculation="eagle", draft_tiers=((1, 2, 4), (3, 8, 1), (9, 64, 0)))
    tiers = {"1": {"candidate_steps": [4]}, "3": {"candidate_steps": [1]}, "9": {"candidate_steps": [0]}}
    assert json.loads(str(told["--speculative-adaptive-config"])) == tiers
    names = (
        "--speculative-adaptive",
        "--speculative-num-steps",
        "--speculative-num-draft-tokens",
        "--speculative-eagle-topk",
    )
    assert [told[name] for name in names] == [True, 4, 5, 1]


@pytest.mark.parametrize(
    ("version", "said"),
    [("0.5.10", "sglang 0.5.10 has no --speculative-adaptive"), ("0.5.12", "sglang 0.5.12 does not know `draft_tiers`")],
)
def test_an_sglang_that_has_no_tiers_by_requests_is_told_as_such(version: str, said: str) -> None:
    with fails(Refused, said):
        sglang(version, speculation="eagle", draft_tiers=((1, 2, 4), (3, 64, 1)))


def test_sglangs_small_draft_model_has_no_tiers() -> None:
    with fails(Refused, "`draft_tiers` is set, but", "'draft'"):
        report_of("sglang", draft=EAGLE, speculation="draft", draft_tiers=((1, 2, 4), (3, 64, 1)))


@pytest.mark.parametrize("tiers", [(), ((2, 4, 1),), ((1, 4, 2), (6, 8, 1)), ((1, 4, -1),), ((3, 1, 2),)])
def test_tiers_with_a_gap_or_nothing_in_them_are_refused(tiers: tuple[tuple[int, int, int], ...]) -> None:
    with fails(Refused, "`draft_tiers` is"):
        report_of("vllm", QWEN, speculation="mtp", draft_tiers=tiers)


@pytest.mark.parametrize("name", ["draft_steps", "draft_adaptive", "lookup_min"])
def test_what_nothing_uses_is_refused_and_not_ignored(name: str) -> None:
    with fails(Refused, f"`{name}` is set"):
        changes: dict[str, Any] = {"speculation": "off", name: 3}
        report_of("sglang", QWEN, **changes)


def test_sizes_of_the_engine_are_the_users_and_their_flags_are_not_said_twice() -> None:
    report = report_of("vllm", QWEN, batch_tokens=2048, graph_batch=6)
    said, because = settings_of(report), {one.name: one.because for one in report.plan.settings}
    assert said["--max-num-batched-tokens"] == 2048
    assert said["--max-cudagraph-capture-size"] == 24  # in tokens: each request has its next and three drafted a step
    assert said["--cudagraph-capture-sizes"] == (4, 8, 16, 24)
    assert because["--max-num-batched-tokens"] == because["--max-cudagraph-capture-size"] == USER
    with fails(Refused, "`graph_batch` is 6", "say it once"):
        report_of("vllm", QWEN, graph_batch=6, flags={"max-cudagraph-capture-size": 8})
    with fails(Refused, "`batch_tokens` is 2,048", "say it once"):
        report_of("vllm", QWEN, batch_tokens=2048, flags={"max-num-batched-tokens": 4096})


def test_llama_cpps_lookup_takes_one_length_and_a_number_and_says_neither_unasked() -> None:
    asked = settings_of_plan(speculation="ngram", lookup_min=3, draft_tokens=16)
    assert (asked["lookup_tokens"], asked["lookup_draft_tokens"]) == (3, 16)
    assert "lookup_tokens" not in settings_of_plan(speculation="ngram")
    with fails(Refused, "`lookup_max` is set, and llamacpp has nothing like it"):
        settings_of_plan(speculation="ngram", lookup_max=3)


def test_llama_cpps_step_of_a_prompt_is_one_batch_and_no_smaller_pieces() -> None:
    said = settings_of_plan(batch_tokens=1024)
    assert (said["batch_tokens"], said["micro_batch_tokens"]) == (1024, 1024)


def settings_of_plan(**changes: Any) -> dict[str, Any]:
    """The settings of llama.cpp's plan for a small file."""
    plan = choose_plan(Wish(name="coder", model=GGUF.path, **changes), GGUF)
    return {one.name: one.value for one in plan.settings}


@pytest.mark.parametrize(
    ("way", "name"),
    [
        (Way("off"), "off"),
        (Way("draft", 4), "draft 4"),
        (Way("ngram", 8, lookup_min=2, lookup_max=8), "ngram 8 after 2 to 8"),
        (Way("ngram", 16, lookup_min=3), "ngram 16 after 3"),
        (Way("ngram", 4, lookup_max=6, draft_topk=2), "ngram 4 by 2 after 6"),
        (Way("eagle3", 15, draft_steps=5, draft_topk=4), "eagle3 15 in 5 steps by 4"),
        (Way("eagle", draft_adaptive=True), "eagle adaptive"),
        (Way("mtp", 4, draft_tiers=((1, 2, 4), (3, 64, 1))), "mtp 4 up to 2, 1 up to 64"),
        (Way(parallel=16), "parallel 16"),
        (Way(memory_share=0.8), "memory_share 0.8"),
        (Way(), "as it is"),
    ],
)
def test_a_way_has_a_name_that_people_understand(way: Way, name: str) -> None:
    assert way.name == name


def test_a_plan_counts_its_draft_model_by_its_own_size() -> None:
    rates = {}
    for billions in (1, 9):
        small = msgspec.structs.replace(
            QWEN, path="/models/small", name=f"Small-{billions}B", repository=None, parameters=billions * 10**9,
            file_bytes=billions * 10**9, layers=24, hidden_size=2048, cache=(), draft_layers=0,
        )  # fmt: skip
        speed = report_of("vllm", QWEN, small, speculation="draft", draft_tokens=4).speed
        assert speed is not None
        assert (speed.draft, {one.draft_tokens for one in speed.drafting}) == (small.name, {4})
        rates[billions] = speed.drafting[0].prediction.decode_tok_s
    assert rates[1] > 1.3 * rates[9]
    assert not getattr(report_of("sglang", draft=EAGLE, speculation="eagle").speed, "draft", "a head")
