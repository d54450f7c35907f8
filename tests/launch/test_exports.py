"""Plans for clusters, to the letter and by what they say; STOKER_WRITE_GOLDEN=1 writes the files again."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from known import EAGLE, H200, MISTRAL, QWEN, make_ground, report_of

from pair_of_sparks import spark
from stoker.errors import Refused
from stoker.facts.engine.catalogs import find_catalog
from stoker.facts.engine.flags import find_flag
from stoker.launch.commented import Reasons, Word
from stoker.launch.container import render_docker_run
from stoker.launch.exported import Exported, exported_plan, exported_spread
from stoker.launch.kubernetes import Cluster, render_kubernetes
from stoker.launch.ranks import in_order, rank_container, rank_launch
from stoker.launch.ray_serve import render_ray_serve
from stoker.plan.spread.report import make_spread
from stoker.records import Setting
from stoker.records.spread import SpreadReport
from support import fails, make_plan

GOLDEN = Path(__file__).parent / "golden_exports"
IMAGES = {"vllm": "vllm/vllm-openai:v0.26.0", "sglang": "lmsysorg/sglang:v0.5.16"}


def pair(engine: str, **changes: Any) -> SpreadReport:
    ground = make_ground(engine, QWEN, boxes=("a", "b"), image=IMAGES[engine], **changes)
    return make_spread(ground, ("a", "b"), (spark(11), spark(12)))


def one(engine: str, **changes: Any) -> Exported:
    return exported_plan(report_of(engine, QWEN, image=IMAGES[engine], **changes))


CLUSTER = Cluster("models", "rdma/hca_shared_devices_a")
RENDERED = {
    "kubernetes-one.yaml": render_kubernetes(one("vllm"), Cluster()),
    "kubernetes-vllm-pair.yaml": render_kubernetes(exported_spread(pair("vllm")), CLUSTER),
    "kubernetes-sglang-pair.yaml": render_kubernetes(exported_spread(pair("sglang")), Cluster()),
    "kubernetes-copies.yaml": render_kubernetes(exported_spread(pair("vllm", split="replicas")), Cluster()),
    "ray-serve-one.yaml": render_ray_serve(one("vllm")),
    "ray-serve-pair.yaml": render_ray_serve(exported_spread(pair("vllm"))),
    "ray-serve-copies.yaml": render_ray_serve(exported_spread(pair("vllm", split="replicas"))),
    "ranks-vllm.txt": "".join(
        f"# rank {found.rank} on {found.box}\n" + "".join(f"{name}={value}\n" for name, value in found.spec.environment)
        + "\n".join(found.spec.argv) + "\n"
        for found in (rank_launch(rank, 30000) for rank in in_order(pair("vllm")))
    ),
    "ranks-sglang.txt": "".join(
        f"# rank {found.rank} on {found.box}\n" + "".join(f"{name}={value}\n" for name, value in found.spec.environment)
        + "\n".join(found.spec.argv) + "\n"
        for found in (rank_launch(rank, 30000) for rank in in_order(pair("sglang")))
    ),
    "ranks-docker.txt": "\n".join(
        word for rank in in_order(pair("vllm")) for word in render_docker_run(rank_container(rank, 30000, has_rdma=True))
    ) + "\n",
}  # fmt: skip


@pytest.mark.parametrize("name", RENDERED)
def test_what_is_written_for_several_boxes_is_the_golden_text(name: str) -> None:
    file = GOLDEN / name
    if os.environ.get("STOKER_WRITE_GOLDEN"):
        file.write_text(RENDERED[name])
    assert RENDERED[name] == file.read_text()


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(RENDERED[name]))


@pytest.mark.parametrize("name", [name for name in RENDERED if name.endswith(".yaml")])
def test_every_mark_has_become_its_reason(name: str) -> None:
    assert "@@" not in RENDERED[name]
    assert len(re.findall(r"^ +# \S", RENDERED[name], re.MULTILINE)) >= 5


def test_workers_come_before_the_head() -> None:
    assert [rank.rank for rank in in_order(pair("vllm"))] == [1, 0]


def test_a_rank_in_a_container_is_on_the_hosts_network_and_the_engine_on_loopback_alone() -> None:
    launch = rank_container(pair("vllm").ranks[0], 30000, has_rdma=True)
    assert (launch.network, launch.publish, launch.devices) == ("host", (), ("/dev/infiniband",))
    assert "0.0.0.0" not in launch.words
    assert launch.words[launch.words.index("--host") + 1] == "127.0.0.1"


def test_one_box_is_a_deployment_that_is_replaced_and_never_doubled() -> None:
    deployment, service = documents("kubernetes-one.yaml")
    assert (deployment["kind"], deployment["spec"]["strategy"], deployment["spec"]["replicas"]) == (
        "Deployment", {"type": "Recreate"}, 1,
    )  # fmt: skip
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == container["resources"]["requests"] == {"nvidia.com/gpu": 1}
    assert {"startupProbe", "readinessProbe", "livenessProbe"} <= container.keys()
    assert service["spec"]["selector"].items() <= deployment["spec"]["template"]["metadata"]["labels"].items()


def test_a_pair_is_a_group_whose_ranks_ask_the_cluster_for_their_places() -> None:
    group, service = documents("kubernetes-vllm-pair.yaml")
    template = group["spec"]["leaderWorkerTemplate"]
    assert (template["size"], template["restartPolicy"]) == (2, "RecreateGroupOnPodRestart")
    leader, worker = (template[role]["spec"]["containers"][0] for role in ("leaderTemplate", "workerTemplate"))
    for container in (leader, worker):
        words = container["args"]
        assert words[words.index("--node-rank") + 1] == "$(LWS_WORKER_INDEX)"
        assert words[words.index("--master-addr") + 1] == "$(LWS_LEADER_ADDRESS)"
        assert words[words.index("--nnodes") + 1] == "$(LWS_GROUP_SIZE)"
        assert container["resources"]["limits"]["rdma/hca_shared_devices_a"] == 1
        assert not any(one.get("value", "").startswith("192.168.") for one in container["env"])
    assert ("--headless" in leader["args"], "--headless" in worker["args"]) == (False, True)
    assert ("readinessProbe" in leader, "readinessProbe" in worker) == (True, False)
    assert service["spec"]["selector"]["role"] == "leader"


def test_sglangs_pair_meets_at_the_leader() -> None:
    group, _ = documents("kubernetes-sglang-pair.yaml")
    words = group["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]["args"]
    assert words[words.index("--dist-init-addr") + 1] == "$(LWS_LEADER_ADDRESS):29501"


def test_copies_are_on_boxes_of_their_own() -> None:
    deployment, _ = documents("kubernetes-copies.yaml")
    apart = deployment["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"]
    assert deployment["spec"]["replicas"] == 2
    assert apart["requiredDuringSchedulingIgnoredDuringExecution"][0]["topologyKey"] == "kubernetes.io/hostname"


def test_what_only_looks_like_a_variable_stays_as_it_is() -> None:
    (container,) = yaml.safe_load(
        render_kubernetes(one("vllm", flags={"chat-template": "$(HOME)/x"}), Cluster()).split("---")[1]
    )["spec"]["template"]["spec"]["containers"]
    assert "$$(HOME)/x" in container["args"]


def test_ray_gets_keywords_that_vllm_knows_and_starts_the_ranks_itself() -> None:
    (tree,) = documents("ray-serve-pair.yaml")
    (llm,) = tree["applications"][0]["args"]["llm_configs"]
    assert tree["applications"][0]["import_path"] == "ray.serve.llm:build_openai_app"
    assert llm["placement_group_config"] == {"bundles": [{"CPU": 1, "GPU": 1}] * 2, "strategy": "STRICT_SPREAD"}
    known = find_catalog("vllm", "0.26.0").catalog
    assert known is not None
    assert [name for name in llm["engine_kwargs"] if find_flag(known, f"--{name.replace('_', '-')}") is None] == []
    assert not {"nnodes", "node_rank", "master_addr", "headless"} & llm["engine_kwargs"].keys()
    assert llm["engine_kwargs"]["distributed_executor_backend"] == "ray"
    assert isinstance(llm["engine_kwargs"]["speculative_config"], dict)
    assert llm["engine_kwargs"]["enable_flashinfer_autotune"] is False


def test_ray_serve_is_refused_for_sglang() -> None:
    with fails(Refused, "Ray Serve LLM runs vLLM"):
        render_ray_serve(one("sglang"))


def pod(exported: Exported) -> tuple[list[str], list[dict[str, Any]]]:
    """Returns the words of a deployment's engine, and its volumes that lie on the box."""
    tree = next(iter(yaml.safe_load_all(render_kubernetes(exported, Cluster()))))["spec"]["template"]["spec"]
    return tree["containers"][0]["args"], [one for one in tree["volumes"] if "hostPath" in one]


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_a_head_lies_where_the_pod_is_told(engine: str) -> None:
    report = report_of(engine, MISTRAL, EAGLE, image=IMAGES[engine], speculation="eagle")
    words, volumes = pod(exported_plan(report))
    assert EAGLE.path not in " ".join(words)
    assert "/draft" in " ".join(words)
    assert [one["hostPath"] for one in volumes] == [
        {"path": path, "type": "Directory"} for path in (MISTRAL.path, EAGLE.path)
    ]


def test_a_file_of_the_users_is_no_folder_and_a_volume_of_an_engines_is_refused() -> None:
    _, [_, own] = pod(one("vllm", mounts=("/etc/chat.jinja:/chat.jinja",)))
    assert own["hostPath"] == {"path": "/etc/chat.jinja"}
    with fails(Refused, "mounts hf-cache", "name a folder"):
        pod(one("vllm", mounts=("hf-cache:/root/.cache",)))


def test_llama_cpp_is_told_all_of_its_plan() -> None:
    settings = (Setting("context_total", 1024, "a test"), Setting("parallel", 2, "a test"), Setting("$A", "b", "a test"))
    plan = make_plan(*settings, image="ghcr.io/ggml-org/llama.cpp:server-cuda", model_path="/srv/m/tiny.gguf")
    words, volumes = pod(Exported(plan, 1, 1, settings))
    assert (words[words.index("--ctx-size") + 1], words[words.index("--parallel") + 1]) == ("1024", "2")
    assert words[words.index("--model") + 1] == "/model/tiny.gguf"
    assert [one["hostPath"] for one in volumes] == [{"path": "/srv/m", "type": "Directory"}]


def test_kubernetes_needs_an_image() -> None:
    with fails(Refused, "names no image"):
        render_kubernetes(exported_plan(report_of("vllm", QWEN, machine=H200)), Cluster())


def test_a_secret_is_refused_and_not_written() -> None:
    secret = one("vllm", environment={"HF_TOKEN": "hf_" + "a" * 34})
    with fails(Refused, "HF_TOKEN"):
        render_ray_serve(secret)
    with fails(Refused, "HF_TOKEN"):
        render_kubernetes(secret, Cluster())


def test_a_name_with_points_becomes_one_that_a_cluster_takes() -> None:
    plan = msgspec.structs.replace(one("vllm").plan, service="qwen3.6_27b.")
    assert msgspec.structs.replace(one("vllm"), plan=plan).name == "qwen3-6-27b"


def test_a_reason_of_several_lines_stays_one_comment() -> None:
    reasons = Reasons()
    text = reasons.write([{"a": [reasons.item('says: "no"\n# x'), Word("1e3")], **reasons.key("why"), "b": 1}], ("head",))
    assert text == '# head\n---\na:\n  # says: "no" # x\n  - "1e3"\n# why\nb: 1\n'


def test_no_golden_export_is_left_over() -> None:
    assert {file.name for file in GOLDEN.iterdir()} == set(RENDERED)
