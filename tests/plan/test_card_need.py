"""How much of what a plan needs lies on a card of its own."""

from __future__ import annotations

import hashlib

import msgspec
import pytest
from known import GB10, H200, QWEN, report_of

from stoker.plan.choose import with_id
from stoker.records import GIB, Abilities, Machine, Setting
from support import make_model, make_plan


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_all_but_the_processes_lie_on_the_card(engine: str) -> None:
    report = report_of(engine, QWEN, machine=H200)
    assert report.budget is not None
    on_card = sum(line.need_bytes for line in report.budget.lines if line.pool == "gpu")
    host = sum(line.need_bytes for line in report.budget.lines if line.pool == "host")
    assert on_card > QWEN.file_bytes
    assert host > GIB
    assert (report.plan.card_need_bytes, report.plan.host_need_bytes) == (on_card, host)


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_unified_memory_is_the_machines_and_all_of_it_is_asked_for(engine: str) -> None:
    plan = report_of(engine, QWEN, machine=GB10).plan
    assert (plan.card_need_bytes, plan.host_need_bytes) == (0, plan.memory_need_bytes)


def test_what_an_owner_claims_lies_on_the_card_but_for_the_processes() -> None:
    counted = report_of("vllm", QWEN, machine=H200)
    plan = report_of("vllm", QWEN, machine=H200, claim_gib=60.0).plan
    assert plan.memory_need_bytes == 60 * GIB
    assert plan.card_need_bytes == 60 * GIB - counted.plan.host_need_bytes


@pytest.mark.parametrize(
    ("layers", "share"), [(None, 0.0), (0, 0.0), (-1, 0.0), (10, 0.25), (40, 1.0), (99, 1.0)]
)  # fmt: skip
def test_llamacpp_has_on_the_card_what_it_was_told_to_put_there(layers: int | None, share: float) -> None:
    model = make_model(layers=40, file_bytes=4 * GIB)
    report = report_of("llamacpp", model, machine=H200, gpu_layers=layers)
    assert report.budget is not None
    on_card = sum(line.need_bytes for line in report.budget.lines if line.pool == "gpu")
    assert report.plan.card_need_bytes == int(on_card * share)
    assert report_of("llamacpp", model, machine=GB10, gpu_layers=layers).plan.card_need_bytes == 0


CARD = msgspec.structs.replace(H200.gpus[0], memory_total_bytes=24 * GIB, memory_used_bytes=0)
HOST = msgspec.structs.replace(H200.memory, total_bytes=64 * GIB, available_bytes=60 * GIB)
BOX = msgspec.structs.replace(H200, gpus=(CARD,), memory=HOST)
LARGE = make_model(layers=40, file_bytes=40 * GIB, kv_bytes_per_token=1000)


@pytest.mark.parametrize(
    ("layers", "told"),
    [
        (None, ""), (0, ""), (10, ""), (30, "they take 31.6 GiB, and the card has 24.0 GiB"),
        (40, "they take 42.1 GiB, and the card has 24.0 GiB"),
    ],
)  # fmt: skip
def test_a_gguf_larger_than_the_card_is_refused_only_where_it_has_to_lie_there(layers: int | None, told: str) -> None:
    report = report_of("llamacpp", LARGE, machine=BOX, gpu_layers=layers)
    assert [one.why for one in report.findings if one.level == "forbid"] == ([told] if told else [])
    assert report.budget is not None
    room_bytes = CARD.memory_total_bytes if layers == LARGE.layers else HOST.total_bytes
    assert report.budget.usable_bytes + sum(line.need_bytes for line in report.budget.kept) == room_bytes


def test_a_gguf_that_is_not_all_on_the_card_is_held_against_the_machines_free_memory() -> None:
    machine = msgspec.structs.replace(BOX, memory=msgspec.structs.replace(HOST, available_bytes=30 * GIB))
    [finding] = [one for one in report_of("llamacpp", LARGE, machine=machine).findings if one.rule == "budget-not-now"]
    assert "30.0 GiB are available now" in finding.why


@pytest.mark.parametrize(("machine", "layers", "known"), [(H200, None, False), (H200, 40, True), (GB10, None, True)])
def test_a_cards_speed_is_predicted_only_of_what_lies_there_whole(machine: Machine, layers: int | None, known: bool) -> None:
    model = make_model(layers=40, file_bytes=8 * GIB, parameters=8 * 10**9, hidden_size=4096)
    assert (report_of("llamacpp", model, machine=machine, gpu_layers=layers).speed is not None) is known


def test_llamacpps_own_word_for_all_layers_is_known() -> None:
    report = report_of("llamacpp", make_model(layers=40), machine=H200, flags={"n-gpu-layers": "all"}, server="/bin/true")
    assert report.plan.card_need_bytes > 0


def test_where_the_need_lies_is_no_part_of_a_plans_id_which_is_as_it_was_before() -> None:
    plan = with_id(make_plan(Setting("context", 1024, "you asked for it"), card_need_bytes=GIB // 2, kv_tokens=7))
    assert plan.plan_id == with_id(make_plan(Setting("context", 1024, "you asked for it"))).plan_id
    said = msgspec.json.encode(
        msgspec.structs.replace(plan, plan_id="p1", card_need_bytes=0, kv_tokens=None, abilities=Abilities())
    )
    before = said.replace(b',"card_need_bytes":0,"parts":[],"seat":null,"ray":null', b"")
    assert before != said
    assert plan.plan_id == hashlib.sha256(before).hexdigest()[:12]
