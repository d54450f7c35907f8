"""A service over several boxes: the ways side by side, what is chosen and refused, and what each box is told."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known import GB, GB10, H200, MISTRAL, QWEN, make_checkpoint, make_ground

from pair_of_sparks import spark
from stoker.engines import find
from stoker.errors import Refused
from stoker.facts.engine.catalogs import find_catalog, load_all
from stoker.facts.engine.flags import find_flag
from stoker.plan.spread.report import check_spread, make_spread
from stoker.records import CacheLayers, Machine, Model, NearCatalog
from stoker.records.speed import WayView
from stoker.records.spread import SpreadReport
from support import fails

PAIR = (spark(11), spark(12))
LLAMA = make_checkpoint(
    path="/models/llama-3.3-70b", name="Llama-3.3-70B", repository="meta-llama/Llama-3.3-70B-Instruct", file_bytes=141 * GB,
    parameters=70 * GB, quantisation="bf16", architecture="LlamaForCausalLM", model_type="llama", layers=80,
    hidden_size=8192, heads=64, kv_heads=8, vocabulary_size=128_256, experts=None, experts_per_token=None, has_vision=False,
    cache=(CacheLayers("full", 80, 163_840),), kv_bytes_per_token=327_680, context_tokens=131_072, template_features=(),
)  # fmt: skip
SMALL = make_checkpoint(
    path="/models/qwen3.5-0.8b", name="Qwen3.5-0.8B", repository="Qwen/Qwen3.5-0.8B", file_bytes=int(0.5 * GB),
    parameters=int(0.8 * GB), quantisation="int4", architecture="Qwen3_5ForCausalLM", model_type="qwen3_5", layers=24,
    hidden_size=1024, heads=8, kv_heads=2, experts=None, experts_per_token=None, has_vision=False, context_tokens=32_768,
    cache=(CacheLayers("full", 6, 6_144),), kv_bytes_per_token=12_288, template_features=(),
)  # fmt: skip


def spread(engine: str, model: Model, machines: tuple[Machine, ...] = PAIR, **changes: Any) -> SpreadReport:
    names = tuple("abcdefgh"[: len(machines)])
    return make_spread(make_ground(engine, model, boxes=names, **changes), names, machines)


def way(report: SpreadReport, kind: str) -> WayView:
    return next(one for one in report.ways if one.kind == kind)


def told(report: SpreadReport, rank: int) -> dict[str, object]:
    return {one.name: one.value for one in report.ranks[rank].plan.settings}


def test_a_model_that_fits_no_box_is_shared() -> None:
    report = spread("vllm", LLAMA)
    assert (way(report, "one box").fits, way(report, "tensor").fits) == (False, True)
    assert report.chosen == way(report, "tensor")
    assert report.because == "the model does not fit one box"
    assert check_spread(report) is report


def test_one_request_of_a_dense_model_gains_from_a_second_box_over_rdma() -> None:
    report = spread("vllm", QWEN)
    assert report.chosen is not None
    assert report.chosen.kind == "tensor"
    assert report.chosen.gain is not None
    low, high = report.chosen.gain
    assert 1.5 < low < high < 2


def test_the_ways_stand_side_by_side_with_their_rates() -> None:
    report = spread("vllm", QWEN)
    assert [one.kind for one in report.ways] == ["one box", "replicas", "tensor", "pipeline"]
    assert all([speed.requests for speed in one.speeds] == [1, 16] for one in report.ways)
    one, copies = way(report, "one box"), way(report, "replicas")
    assert copies.kv_tokens == 2 * (one.kv_tokens or 0)
    assert copies.speeds[1].total.decode_tok_s > one.speeds[1].total.decode_tok_s


def test_a_pipeline_is_refused_where_the_model_fits_one_box() -> None:
    report = spread("vllm", QWEN, split="pipeline")
    assert report.chosen is None
    with fails(Refused, "it can only be slower", "spread-only-slower", "replicas"):
        check_spread(report)


def test_a_pipeline_is_taken_where_nothing_else_fits_and_it_is_asked_for() -> None:
    assert (spread("vllm", LLAMA, split="pipeline").chosen or report_none()).kind == "pipeline"


def report_none() -> WayView:
    raise AssertionError("no way was chosen")


def test_sharing_a_tiny_model_over_sockets_is_refused_with_its_reason() -> None:
    no_ports = msgspec.structs.replace(PAIR[0], ports=())
    report = spread("vllm", SMALL, (no_ports, no_ports), parallel=1)
    assert report.link.kind == "sockets"
    assert [one.rule for one in report.ways] == ["", "", "spread-only-slower", "spread-only-slower"]
    with fails(Refused, "the model fits one box", "one request gets at most 9", "spread-only-slower"):
        check_spread(report)


def test_the_same_model_over_rdma_is_not_refused() -> None:
    assert way(spread("vllm", SMALL, parallel=1), "tensor").rule == ""


def test_over_an_unknown_link_it_may_be_slower_and_that_is_said() -> None:
    report = spread("sglang", QWEN, (GB10, GB10), speculation="off")
    assert report.link.kind == "unknown"
    assert {"spread-link", "spread-only-slower"} <= {one.rule for one in report.findings if one.level == "warn"}


def test_copies_are_taken_where_they_are_asked_for_and_are_told_nothing_of_each_other() -> None:
    report = spread("vllm", QWEN, split="replicas")
    assert report.chosen == way(report, "replicas")
    assert len(report.ranks) == 2
    assert not {"--nnodes", "$NCCL_IB_HCA"} & told(report, 0).keys()


def test_copies_of_a_model_that_fits_no_box_are_refused() -> None:
    with fails(Refused, "a copy does not fit each box"):
        check_spread(spread("vllm", LLAMA, split="replicas"))


def test_a_model_that_fits_nowhere_is_refused_with_every_way() -> None:
    huge = msgspec.structs.replace(LLAMA, file_bytes=700 * GB, parameters=350 * GB)
    with fails(Refused, "cannot be spread over these boxes", "a box has not the memory for its part"):
        check_spread(spread("vllm", huge))


def test_three_boxes_cannot_share_64_heads_but_hand_on() -> None:
    report = spread("vllm", LLAMA, (*PAIR, spark(13)))
    assert "do not divide by 3" in way(report, "tensor").why_not
    assert (report.chosen or report_none()).kind == "pipeline"


def test_on_a_machine_that_the_fit_is_not_of_no_rate_is_made_up() -> None:
    report = spread("vllm", QWEN, (H200, H200))
    assert all(one.speeds == () and one.gain is None for one in report.ways)
    assert "unknown" in report.because


def test_vllm_is_told_its_place_and_the_worker_has_no_door() -> None:
    report = spread("vllm", LLAMA)
    head, worker = told(report, 0), told(report, 1)
    shared = {"--tensor-parallel-size": 2, "--pipeline-parallel-size": 1, "--nnodes": 2, "--master-addr": "192.168.100.11",
              "--master-port": 29501, "--distributed-executor-backend": "mp"}  # fmt: skip
    assert shared.items() <= head.items()
    assert shared.items() <= worker.items()
    assert (head["--node-rank"], worker["--node-rank"]) == (0, 1)
    assert ("--headless" in head, worker["--headless"]) == (False, True)
    assert (head["$VLLM_HOST_IP"], worker["$VLLM_HOST_IP"]) == ("192.168.100.11", "192.168.100.12")


def test_sglang_is_told_its_place() -> None:
    report = spread("sglang", LLAMA)
    said = told(report, 1)
    assert (said["--nnodes"], said["--node-rank"], said["--dist-init-addr"]) == (2, 1, "192.168.100.11:29501")
    assert said["$SGLANG_HOST_IP"] == "192.168.100.12"
    assert "$VLLM_HOST_IP" not in said


def test_each_rank_is_told_the_links_interface_and_all_its_devices_and_no_pinned_address_index() -> None:
    for rank in (0, 1):
        said = told(spread("vllm", LLAMA), rank)
        assert {said[name] for name in ("$NCCL_SOCKET_IFNAME", "$GLOO_SOCKET_IFNAME", "$TP_SOCKET_IFNAME")} == {
            "enp1s0f1np1"
        }
        assert said["$NCCL_IB_HCA"] == "rocep1s0f1,roceP2p1s0f1"
        assert "$NCCL_IB_GID_INDEX" not in said  # rule nccl-gid-index-pin: it differs from machine to machine


def test_what_nobody_knows_of_the_link_is_not_told() -> None:
    said = told(spread("vllm", LLAMA, (GB10, GB10)), 0)
    assert not any(name.startswith(("$NCCL_IB", "$NCCL_SOCKET", "$GLOO", "$VLLM_HOST")) for name in said)
    assert not any("{" in str(value) for name, value in said.items() if name.startswith("$"))
    assert said["--master-addr"] == "HEAD"


def test_every_setting_of_a_rank_has_a_reason() -> None:
    for engine in ("vllm", "sglang"):
        assert all(one.because for rank in spread(engine, LLAMA).ranks for one in rank.plan.settings)


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_the_flags_exist_in_every_version_that_is_catalogued(engine: str) -> None:
    words = {*find(engine).spread(2, 2, 1, "10.0.0.1", 1, "mp")}
    for catalog in load_all(engine):
        if find_flag(catalog, "--nnodes") is not None:
            assert [word for word in words if find_flag(catalog, word) is None] == [], catalog.version


def test_a_version_without_these_flags_is_refused() -> None:
    catalog = find_catalog("vllm", "0.26.0").catalog
    assert catalog is not None
    old = msgspec.structs.replace(catalog, flags=tuple(one for one in catalog.flags if one.name != "--nnodes"))
    with fails(Refused, "has no --nnodes"):
        spread("vllm", LLAMA, version="0.26.0", near=NearCatalog(old))


def test_under_ray_the_head_alone_runs_vllm_and_every_box_joins_first() -> None:
    report = spread("vllm", LLAMA, executor="ray")
    head, worker = report.ranks
    sizes = ("--num-gpus", "1", "--num-cpus", "1", "--object-store-memory", str(1024**3), "--block")
    assert head.before == ("ray", "start", "--head", "--port", "6379", "--include-dashboard=false",
                           "--node-ip-address", "192.168.100.11", *sizes)  # fmt: skip
    assert worker.instead == ("ray", "start", "--address", "192.168.100.11:6379", "--node-ip-address", "192.168.100.12",
                              *sizes)  # fmt: skip
    said = told(report, 0)
    assert said["--distributed-executor-backend"] == "ray"
    assert said["$RAY_memory_monitor_refresh_ms"] == "0"
    assert (said["$RAY_USAGE_STATS_ENABLED"], said["$RAY_ADDRESS"]) == ("0", "192.168.100.11:6379")
    assert "--nnodes" not in said
    assert "$RAY_ADDRESS" not in told(report, 1)


def test_rays_program_is_that_of_the_engines_environment() -> None:
    head, worker = spread("vllm", LLAMA, executor="ray", program=("/opt/venv/bin/vllm", "serve")).ranks
    assert (head.before[0], worker.instead[0]) == ("/opt/venv/bin/ray", "/opt/venv/bin/ray")


def test_rays_memory_is_counted_beside_the_engines_share() -> None:
    own, over_ray = (spread("vllm", LLAMA, executor=executor).ranks[0] for executor in ("mp", "ray"))
    assert own.budget is not None and over_ray.budget is not None
    lines = {line.name: line for line in over_ray.budget.lines}
    assert (lines["ray"].need_bytes, lines["ray"].pool) == (int(1.75 * 1024**3), "host")
    assert over_ray.budget.total_bytes - own.budget.total_bytes == lines["ray"].need_bytes
    assert over_ray.budget.kv_tokens == own.budget.kv_tokens
    assert own.plan.plan_id != over_ray.plan.plan_id


def test_sglang_with_ray_is_refused() -> None:
    with fails(Refused, "`executor` is ray"):
        spread("sglang", LLAMA, executor="ray")


def test_llamacpp_over_several_boxes_is_refused() -> None:
    with fails(Refused, "no model over several boxes"):
        spread("llamacpp", make_checkpoint(format="gguf", layouts=("gguf",), file_bytes=20 * GB))


@pytest.mark.parametrize("flag", ["tensor-parallel-size", "nnodes", "tp-size", "node_rank", "headless"])
def test_who_says_the_ranks_itself_is_asked_to_leave_one_of_the_two_out(flag: str) -> None:
    with fails(Refused, "and `boxes` names the machines"):
        spread("vllm", LLAMA, flags={flag: 2})


def test_a_rank_takes_less_than_the_whole_and_has_room_for_the_links_buffers() -> None:
    one, two = spread("vllm", MISTRAL).ways[0], spread("vllm", MISTRAL)
    lines = {line.name: line.need_bytes for rank in two.ranks for line in (rank.budget.lines if rank.budget else ())}
    assert lines["weights"] == MISTRAL.file_bytes // 2
    assert lines["link"] == 512 * 1024**2
    assert (way(two, "tensor").need_bytes or 0) < (one.need_bytes or 0)


@given(st.sampled_from([2, 4, 8]), st.sampled_from(["vllm", "sglang"]), st.sampled_from(["auto", "tensor", "pipeline"]))
@settings(max_examples=12, deadline=None)
def test_whatever_is_chosen_takes_every_box_and_numbers_them(boxes: int, engine: str, split: str) -> None:
    report = spread(engine, LLAMA, tuple(spark(11 + index) for index in range(boxes)), split=split)
    assert report.chosen is not None
    assert [rank.rank for rank in report.ranks] == list(range(boxes))
    assert {said["--node-rank"] for said in (told(report, rank) for rank in range(boxes))} == set(range(boxes))
    assert report.chosen.tensor * report.chosen.pipeline == boxes


def test_ends_of_the_link_with_packets_of_another_size_are_warned_of() -> None:
    small = tuple(msgspec.structs.replace(port, mtu=1500) for port in PAIR[1].ports or ())
    report = spread("vllm", LLAMA, (PAIR[0], msgspec.structs.replace(PAIR[1], ports=small)))
    (found,) = [one for one in report.findings if one.rule == "cx7-config-not-persistent"]
    assert "1500 and 9000" in found.what
    assert "cx7-config-not-persistent" not in {one.rule for one in spread("vllm", LLAMA).findings}


def test_vllms_module_is_refused_since_its_workers_would_open_doors() -> None:
    with fails(Refused, "does not know --headless"):
        spread("vllm", LLAMA, program=("python3", "-m", "vllm.entrypoints.openai.api_server"))


def test_a_pipeline_that_has_room_for_more_requests_than_copies_is_not_refused() -> None:
    """Weights of 64 GB leave two boxes little cache as copies, and much where each holds half of them."""
    full = msgspec.structs.replace(LLAMA, file_bytes=64 * GB, parameters=32 * GB)
    report = spread("vllm", full, split="pipeline")
    assert way(report, "one box").fits
    assert (way(report, "pipeline").kv_tokens or 0) > (way(report, "replicas").kv_tokens or 0)
    assert (report.chosen or report_none()).kind == "pipeline"
