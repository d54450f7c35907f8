"""What a plan tells of its service's abilities: what its settings and the model's headers say, and nothing more."""

from __future__ import annotations

from typing import Any

import pytest
from known import MISTRAL, QWEN, make_checkpoint, report_of

from stoker.plan.abilities import read_abilities
from stoker.plan.choose import choose_plan
from stoker.records import Abilities, Wish
from support import make_model, make_plan

THINKER = make_checkpoint(template_features=("tools", "thinking"))
EVERYTHING_UNKNOWN = Abilities()


def gguf(features: tuple[str, ...] = ("system", "tools"), flags: Any = None, has_template: bool = True) -> Abilities:
    model = make_model(template_features=features, has_chat_template=has_template)
    return read_abilities(choose_plan(Wish(name="a", model="/m.gguf", flags=flags or {}), model), model)


def served(engine: str, model: Any = MISTRAL, **changes: Any) -> Abilities:
    return report_of(engine, model, **changes).plan.abilities


def test_llamacpp_reads_calls_and_thoughts_by_the_template() -> None:
    plain = gguf()
    assert (plain.chat, plain.tools, plain.reasoning, plain.structured_output) == (True, True, False, True)
    assert (plain.embeddings, plain.rerank, plain.vision, plain.audio) == (False, False, False, None)
    assert gguf(("tools", "thinking")).reasoning is True
    assert gguf(("tools", "thinking"), {"reasoning-format": "none"}).reasoning is False


def test_without_a_template_nobody_knows_how_a_model_chats() -> None:
    bare = gguf((), has_template=False)
    assert (bare.chat, bare.tools, bare.reasoning) == (None, None, None)


def test_a_projector_lets_a_gguf_see() -> None:
    assert gguf(flags={"mmproj": "/p.gguf"}).vision is True


@pytest.mark.parametrize(("flag", "embeds", "ranks"), [("embeddings", True, False), ("reranking", False, True)])
def test_a_server_of_vectors_does_not_chat(flag: str, embeds: bool, ranks: bool) -> None:
    found = gguf(flags={flag: True})
    assert (found.chat, found.tools, found.embeddings, found.rerank) == (False, False, embeds, ranks)


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_a_gpu_engine_without_a_parser_gives_calls_as_text(engine: str) -> None:
    rules: tuple[()] = ()
    plan = make_plan(engine=engine, settings=(), program=())
    found = read_abilities(plan, THINKER)
    assert (found.tools, found.reasoning, found.chat, found.structured_output) == (False, False, True, True)
    assert rules == ()


def test_a_parser_makes_calls_and_thoughts_known() -> None:
    known = served("sglang", THINKER, flags={"tool-call-parser": "mistral", "reasoning-parser": "mistral"})
    assert (known.tools, known.reasoning, known.vision) == (True, True, None)
    auto = {"enable-auto-tool-choice": True, "tool-call-parser": "mistral"}
    assert served("vllm", THINKER, flags=auto).tools is True


def test_vllm_needs_its_switch_beside_the_parser() -> None:
    from stoker.records import Setting

    parser = (Setting("--tool-call-parser", "mistral", "you"),)
    assert read_abilities(make_plan(engine="vllm", settings=parser, program=()), THINKER).tools is False
    assert read_abilities(make_plan(engine="sglang", settings=parser, program=()), THINKER).tools is True


def test_what_engines_read_by_themselves_is_unknown() -> None:
    model = make_checkpoint(model_type="gpt_oss")
    found = read_abilities(make_plan(engine="vllm", settings=(), program=()), model)
    assert (found.tools, found.reasoning) == (None, None)


def test_a_model_without_pictures_in_its_headers_sees_none_unless_they_say_less() -> None:
    assert served("sglang", QWEN).vision is False
    native = make_checkpoint(has_vision=False, layouts=("mistral",))
    assert read_abilities(make_plan(engine="vllm", settings=(), program=()), native).vision is None


@pytest.mark.parametrize(
    "changes",
    [
        {"engine": "command"},
        {"program": ("/opt/serve", "--x", "y")},
        {"engine": "sglang", "program": ("a", "--b")},
    ],
)
def test_nothing_is_known_where_the_settings_stand_elsewhere(changes: dict[str, Any]) -> None:
    assert read_abilities(make_plan(**{"settings": (), "program": (), **changes}), THINKER) == EVERYTHING_UNKNOWN


def test_a_plan_knows_its_cache_unless_its_owner_knows_better() -> None:
    report = report_of("sglang")
    assert report.budget is not None
    assert report.plan.kv_tokens == report.budget.kv_tokens
    assert report_of("sglang", claim_gib=90.0).plan.kv_tokens is None
