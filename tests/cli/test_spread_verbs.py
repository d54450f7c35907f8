"""`stoker plan` and `predict` over several boxes, and `stoker export`, as people and programs use them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import checkpoints
from home import Home
from pair_of_sparks import spark, write_facts

LLAMA: dict[str, Any] = {
    **checkpoints.LLAMA, "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64,
}  # fmt: skip


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sparse folder with the shape of Llama 3.3 70B in 16 bits."""
    folder = tmp_path_factory.mktemp("models") / "llama-3.3-70b"
    return checkpoints.write_checkpoint(folder, checkpoints.llama(LLAMA), LLAMA, shards=2, **checkpoints.WHOLE)


@pytest.fixture
def pair(home: Home, llama: Path) -> Home:
    """A home whose service is one model over two Sparks with a cable between them."""
    home.configure(f'[service.big]\nmodel = "{llama}"\nengine = "vllm"\nversion = "0.26.0"\nboxes = ["a", "b"]\n')
    write_facts(home.folder / "boxes", a=spark(11), b=spark(12))
    return home


def test_a_plan_over_two_boxes_shows_link_ways_choice_and_each_ranks_words(pair: Home) -> None:
    said = pair.run("plan", "big").stdout
    for part in ("RDMA", "192.168.100.12", "TP=2", "PP=2", "2 copies", "too much", "the model does not fit one box",
                 "rank 1 on b", "--headless", "$NCCL_IB_HCA=rocep1s0f1,roceP2p1s0f1"):  # fmt: skip
        assert part in said, part


def test_the_words_of_every_rank_are_printed_the_head_last(pair: Home) -> None:
    said = pair.run("plan", "big", "--render", "argv").stdout
    assert said.index("# rank 1, on b") < said.index("# rank 0, on a")
    assert said.count("--nnodes 2") == 2
    assert said.count("--headless") == 1


def test_through_ray_its_head_is_printed_first_and_the_engine_last(pair: Home) -> None:
    pair.paths.config.write_text(pair.paths.config.read_text() + 'executor = "ray"\n')
    said = pair.run("plan", "big", "--render", "argv").stdout
    ray, worker, engine = said.replace(" \\\n  ", " ").split("# ")[1:]
    assert ray.startswith("Ray's head, on a; it stays") and worker.startswith("rank 1, on b")
    assert "ray start --head --port 6379" in ray and "NCCL_SOCKET_IFNAME=enp1s0f1np1" in ray
    assert "ray start --address 192.168.100.11:6379" in worker and "NCCL_SOCKET_IFNAME=enp1s0f1np1" in worker
    assert "vllm serve" in engine and "RAY_ADDRESS=192.168.100.11:6379" in engine
    assert "NCCL_SOCKET_IFNAME" not in engine  # vLLM would copy it to the other box


def test_a_plan_over_two_boxes_as_json_has_its_ways_and_ranks(pair: Home) -> None:
    report = pair.json("plan", "big")
    assert [way["kind"] for way in report["ways"]] == ["one box", "replicas", "tensor", "pipeline"]
    assert report["chosen"]["kind"] == "tensor"
    assert [rank["box"] for rank in report["ranks"]] == ["a", "b"]


def test_what_can_only_be_slower_is_refused_with_its_rule(pair: Home) -> None:
    small = json.dumps(str(pair.folder / "small"))
    checkpoints.write_checkpoint(
        pair.folder / "small", checkpoints.llama(checkpoints.LLAMA), checkpoints.LLAMA, **checkpoints.WHOLE
    )
    pair.configure(f'[service.small]\nmodel = {small}\nengine = "vllm"\nboxes = ["a", "b"]\nsplit = "pipeline"\n')
    done = pair.run("plan", "small", code=3)
    assert "it can only be slower" in done.stdout
    assert "spread-only-slower" in done.stdout


def test_a_service_over_two_boxes_is_not_started_on_one_of_them(pair: Home) -> None:
    done = pair.run("up", "big", code=3)
    assert "the first of `boxes` is the head" in done.stderr


def test_on_plans_for_one_box_what_two_would_share(pair: Home) -> None:
    done = pair.run("plan", "big", "--on", "gb10", code=3)
    assert "does not fit this machine" in done.stdout


def test_boxes_nobody_knows_are_named(pair: Home) -> None:
    done = pair.run("plan", "big", "--boxes", "a,nobody", code=2)
    assert "there is no machine called `nobody`" in done.stderr


def test_one_machine_and_several_are_not_asked_for_at_once(pair: Home) -> None:
    assert "leave one of the two out" in pair.run("plan", "big", "--boxes", "a,b", "--on", "gb10", code=2).stderr


def test_one_name_is_no_pair(pair: Home) -> None:
    assert "names one box" in pair.run("plan", "big", "--boxes", "a", code=2).stderr


def test_predict_shows_the_ways_and_holds_what_was_published(home: Home) -> None:
    view = home.json(
        "predict", "Qwen3.6-27B-FP8", "--engine", "sglang", "--boxes", "2", "--concurrency", "8", "--on", "gb10"
    )
    tensor = next(way for way in view["ways"] if way["kind"] == "tensor")
    totals = {speed["requests"]: speed["total"] for speed in tensor["speeds"]}
    assert totals[1]["low_tok_s"] < 8.1 < totals[1]["high_tok_s"]
    assert totals[8]["low_tok_s"] < 40.9 < totals[8]["high_tok_s"]
    assert "PP=2" in home.run("predict", "Qwen3.6-27B-FP8", "--boxes", "2", "--link", "rdma").stdout


def test_the_manifests_of_a_pair_are_yaml_with_a_group_and_a_service(pair: Home) -> None:
    said = pair.run("export", "kubernetes", "big", "--image", "vllm/vllm-openai:v0.26.0", "--namespace", "models").stdout
    kinds = [(one["kind"], one["metadata"]["namespace"]) for one in yaml.safe_load_all(said)]
    assert kinds == [("LeaderWorkerSet", "models"), ("Service", "models")]


def test_one_box_is_exported_for_ray_and_for_kubernetes(home: Home) -> None:
    folder = home.folder / "llama-3.1-8b"
    small = str(
        checkpoints.write_checkpoint(folder, checkpoints.llama(checkpoints.LLAMA), checkpoints.LLAMA, **checkpoints.WHOLE)
    )
    assert "import_path" in home.run("export", "ray-serve", small, "--on", "gb10").stdout
    text = home.json("export", "kubernetes", small, "--on", "gb10")["text"]
    assert [one["kind"] for one in yaml.safe_load_all(text)] == ["Deployment", "Service"]


def test_a_plan_that_is_refused_is_not_exported(pair: Home, llama: Path) -> None:
    assert "does not fit this machine" in pair.run("export", "kubernetes", str(llama), "--on", "gb10-64", code=3).stderr
    assert "names no image" in pair.run("export", "kubernetes", "big", code=3).stderr
