"""Every choice that a plan makes, with its reason, and every wish that it refuses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.config import SERVICE_NAME
from stoker.errors import Refused
from stoker.plan.choose import choose_plan
from stoker.plan.wishes import name_for
from stoker.records import MIB, Plan, Setting
from support import fails, make_model, make_wish

DRAFT = make_model(name="Draft", path="/models/draft.gguf", file_bytes=64 * MIB)


def settings_of(plan: Plan) -> dict[str, Setting]:
    return {setting.name: setting for setting in plan.settings}


def value_of(plan: Plan, name: str) -> object:
    found = settings_of(plan).get(name)
    return found.value if found else None


def because(plan: Plan, name: str) -> str:
    return settings_of(plan)[name].because


@pytest.mark.parametrize(
    ("flags", "parts"),
    [
        ({"host": "0.0.0.0"}, ["through the gateway alone"]), ({"port": 9999}, ["set `port`"]),
        ({"alias": "other"}, ["set `served_name`"]), ({"ctx-size": 131072}, ["set `context`"]),
        ({"--ctx_size": 131072}, ["set `context`"]), ({"parallel": 8}, ["set `parallel`"]),
        ({"api-key": "k"}, ["leave it out"]),
    ],
)  # fmt: skip
def test_what_the_plan_says_itself_is_not_said_again_in_flags(flags: dict[str, Any], parts: list[str]) -> None:
    with fails(Refused, *parts):
        choose_plan(make_wish(flags=flags), make_model())


def test_a_bare_wish_gets_a_context_and_parallel_answers_with_reasons() -> None:
    plan = choose_plan(make_wish(), make_model())
    assert (value_of(plan, "context"), value_of(plan, "parallel"), value_of(plan, "context_total")) == (16384, 4, 65536)
    assert because(plan, "context") == "enough for most work; the model allows 32768"
    assert because(plan, "parallel") == "a person, an agent and two to spare can be answered at once"
    assert because(plan, "context_total") == "llama.cpp shares one cache between its slots: context times parallel"
    assert set(settings_of(plan)) == {"context", "parallel", "context_total"}


def test_a_wish_that_says_everything_is_followed_and_says_so() -> None:
    wish = make_wish(context=1024, parallel=2, gpu_layers=0, threads=6, reasoning="on", port=9001, served_name="org/Small")
    plan = choose_plan(wish, make_model())
    values = {name: value_of(plan, name) for name in ("context", "parallel", "context_total", "gpu_layers", "threads")}
    assert values == {"context": 1024, "parallel": 2, "context_total": 2048, "gpu_layers": 0, "threads": 6}
    assert {because(plan, name) for name in ("context", "parallel", "gpu_layers", "threads")} == {"you asked for it"}
    assert (plan.port, plan.model, plan.service) == (9001, "org/Small", "small")
    assert because(plan, "reasoning") == "the model thinks unless a request forbids it"


def test_every_setting_of_every_kind_of_wish_has_a_reason() -> None:
    for wish, draft in [
        (make_wish(reasoning="off", gpu_layers=9, threads=1), None),
        (make_wish(speculation="ngram"), None),
        (make_wish(speculation="draft", draft="/models/draft.gguf"), DRAFT),
    ]:
        assert all(setting.because for setting in choose_plan(wish, make_model(), draft).settings)


@pytest.mark.parametrize(
    ("trained", "context", "reason"),
    [
        (4096, 4096, "all that the model was trained for"),
        (16384, 16384, "all that the model was trained for"),
        (16385, 16384, "enough for most work; the model allows 16385"),
        (None, 16384, "enough for most work; the model allows an unknown number"),
    ],
)
def test_the_context_follows_what_the_model_was_trained_for(trained: int | None, context: int, reason: str) -> None:
    plan = choose_plan(make_wish(), make_model(context_tokens=trained))
    assert (value_of(plan, "context"), because(plan, "context")) == (context, reason)


def test_any_context_may_be_asked_of_a_model_that_does_not_say_its_own() -> None:
    assert value_of(choose_plan(make_wish(context=100_000), make_model(context_tokens=None)), "context") == 100_000


def test_a_very_small_model_gets_one_thread_unless_the_user_chose() -> None:
    small = make_model(file_bytes=64 * MIB - 1)
    assert value_of(choose_plan(make_wish(), small), "threads") == 1
    assert value_of(choose_plan(make_wish(threads=3), small), "threads") == 3
    assert value_of(choose_plan(make_wish(), make_model(file_bytes=64 * MIB)), "threads") is None


def test_the_models_name_is_the_services_unless_it_has_its_own() -> None:
    assert choose_plan(make_wish(), make_model()).model == "small"
    assert choose_plan(make_wish(served_name="qwen"), make_model()).model == "qwen"


def test_ngram_speculation_needs_no_second_model() -> None:
    plan = choose_plan(make_wish(speculation="ngram"), make_model())
    assert value_of(plan, "speculation_type") == "ngram-simple"
    assert value_of(plan, "draft_model") is None


def test_a_draft_that_came_with_the_model_and_one_that_was_asked_for_have_different_reasons() -> None:
    came = choose_plan(make_wish(speculation="draft"), make_model(), DRAFT)
    assert value_of(came, "draft_model") == "/models/draft.gguf"
    assert because(came, "draft_model") == "it came with the model"
    assert value_of(came, "draft_tokens") == 3
    assert "llama.cpp's default" in because(came, "draft_tokens")
    asked = choose_plan(make_wish(speculation="draft", draft="d.gguf", draft_tokens=8), make_model(), DRAFT)
    assert because(asked, "draft_model") == "you asked for it"
    assert (value_of(asked, "draft_tokens"), because(asked, "draft_tokens")) == (8, "you asked for it")


def test_a_drafts_memory_is_counted_too() -> None:
    alone = choose_plan(make_wish(), make_model())
    both = choose_plan(make_wish(speculation="draft"), make_model(), DRAFT)
    assert both.memory_need_bytes >= alone.memory_need_bytes + DRAFT.file_bytes + 65536 * 1024


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"parallel": 0}, ["`parallel` is 0", "give 1 or more"]),
        ({"parallel": -3}, ["`parallel` is -3"]),
        ({"context": 63}, ["`context` is 63 tokens", "give 64 or more"]),
        ({"context": -1}, ["`context` is -1 tokens"]),
        ({"context": 32769}, ["32,769 tokens, Small was trained for 32,768", "writes nonsense", "give 32768 or less"]),
        ({"context": 32768, "parallel": 65536}, ["2,147,483,648 tokens", "2,147,483,647 or less"]),
        ({"parallel": 10**30}, ["`context` times `parallel`"]),
        ({"port": 65536}, ["`port` is 65,536", "from 0 to 65535"]),
        ({"port": -1}, ["`port` is -1"]),
        ({"threads": 0}, ["`threads` is 0", "from 1 to 1024"]),
        ({"gpu_layers": -2}, ["`gpu_layers` is -2"]),
        ({"gpu_layers": 2**40}, ["`gpu_layers` is"]),
        ({"speculation": "draft", "draft_tokens": 0}, ["`draft_tokens` is 0", "from 1 to 64"]),
        ({"speculation": "draft", "draft_tokens": 65}, ["`draft_tokens` is 65"]),
        (
            {"speculation": "off", "draft": "d.gguf"},
            ["`draft` is set, but `speculation` is 'off'", "ignored in silence", "set speculation = 'draft'"],
        ),
        ({"speculation": "ngram", "lookup_max": 3}, ["`lookup_max` is set, and llamacpp has nothing like it"]),
        ({"speculation": "draft"}, ["needs `draft`", "Small brings no draft model along", "speculation = 'ngram'"]),
        ({"name": "../../etc/cron.d/x"}, ["'../../etc/cron.d/x' cannot be a service's name", "lower-case letters"]),
        ({"name": ""}, ["'' cannot be a service's name"]),
        ({"name": "a\n"}, ["cannot be a service's name"]),
        ({"served_name": ""}, ["`served_name` is ''", "printable"]),
        ({"served_name": "  "}, ["`served_name` is '  '"]),
        ({"served_name": "a\r\nset-cookie: b"}, ["`served_name` is 'a\\r\\nset-cookie: b'"]),
        ({"served_name": "a\0b"}, ["`served_name` is 'a\\x00b'"]),
    ],
)
def test_a_wish_that_cannot_work_is_refused_with_a_next_step(changes: dict[str, Any], parts: list[str]) -> None:
    with fails(Refused, "next: ", *parts):
        choose_plan(make_wish(**changes), make_model())


def test_a_draft_of_another_vocabulary_is_refused() -> None:
    with fails(Refused, "Draft cannot draft for Small", "vocabularies differ", "same family"):
        choose_plan(make_wish(speculation="draft"), make_model(), make_model(name="Draft", vocabulary_hash="sha256:2:9"))


@pytest.mark.parametrize(("model_hash", "draft_hash"), [(None, None), (None, "sha256:1:9"), ("sha256:1:9", None)])
def test_two_unknown_vocabularies_are_not_taken_for_equal(model_hash: str | None, draft_hash: str | None) -> None:
    model, draft = make_model(vocabulary_hash=model_hash), make_model(name="Draft", vocabulary_hash=draft_hash)
    with fails(Refused, "unknown whether Draft can draft for Small", "names no vocabulary"):
        choose_plan(make_wish(speculation="draft"), model, draft)


def test_a_plans_id_is_the_same_for_the_same_launch_and_another_for_any_other() -> None:
    plan = choose_plan(make_wish(), make_model())
    assert plan.plan_id == choose_plan(make_wish(), make_model()).plan_id
    others = [
        choose_plan(make_wish(context=512), make_model()), choose_plan(make_wish(port=9000), make_model()),
        choose_plan(make_wish(server="/opt/llama-server"), make_model()),
        choose_plan(make_wish(served_name="x"), make_model()),
        choose_plan(make_wish(), make_model(file_bytes=5)), choose_plan(make_wish(reasoning="on"), make_model()),
    ]  # fmt: skip
    assert len({plan.plan_id, *(other.plan_id for other in others)}) == 7


def test_the_revision_is_that_of_the_files_content() -> None:
    one, other = (choose_plan(make_wish(), make_model(digest=digest)) for digest in ("0123456789ab", "ba9876543210"))
    assert one.revision == "0123456789ab"
    assert one.plan_id != other.plan_id


@given(st.text())
def test_a_name_made_from_any_file_is_a_services_name(stem: str) -> None:
    assert SERVICE_NAME.fullmatch(name_for(stem))


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        ("Qwen3.8-27B-Q4_K_M", "qwen3.8-27b-q4_k_m"),
        ("my model (2)", "my-model-2"),
        ("../x", "x"),
        ("日本", "model"),
        ("", "model"),
    ],
)
def test_names_are_made_from_what_can_be_kept(stem: str, name: str) -> None:
    assert name_for(stem) == name
