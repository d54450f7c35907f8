"""What docker's API is told of a container."""

from __future__ import annotations

import json

import msgspec

from launch_samples import make_container, make_small_container
from stoker.errors import Refused
from stoker.launch.container_api import render_create
from stoker.launch.from_plan import supervised_container_of
from stoker.records import GIB, Setting
from stoker.records.ranks import Seat
from support import fails, make_plan

KEY = {"VLLM_API_KEY": "k$1'\""}


def test_everything_that_was_asked_for_is_in_the_document() -> None:
    body = render_create(make_container(env_file=None), KEY)
    assert body["Image"] == "lmsysorg/sglang:nightly-dev-cu13-20260323-999bad5a"
    assert (body["Entrypoint"], body["Cmd"][:2]) == (["python3"], ["-m", "sglang.launch_server"])
    assert body["Env"] == ["SGLANG_ENABLE_SPEC_V2=True", "HF_HUB_OFFLINE=1", "VLLM_API_KEY=k$1'\""]
    assert body["ExposedPorts"] == {"30000/tcp": {}}
    assert (body["StopTimeout"], body["Tty"], body["Labels"]) == (30, False, {"stoker.service": "coder"})
    host = body["HostConfig"]
    assert host["Mounts"] == [
        {"Type": "bind", "Source": "/models/coder nvfp4", "Target": "/model", "ReadOnly": True},
        {"Type": "bind", "Source": "/home/alice/.cache/sglang", "Target": "/root/.cache", "ReadOnly": False},
    ]
    assert host["PortBindings"] == {"30000/tcp": [{"HostIp": "127.0.0.1", "HostPort": "30000"}]}
    assert host["Ulimits"][0] == {"Name": "memlock", "Soft": -1, "Hard": -1}
    assert (host["ShmSize"], host["SecurityOpt"], host["OomScoreAdj"]) == (16 * GIB, ["no-new-privileges"], 500)


def test_no_container_is_restarted_or_removed_by_its_engine_whatever_the_launch_says() -> None:
    for at_exit in ("keep", "remove", "on-failure", "always"):
        host = render_create(make_container(env_file=None, at_exit=at_exit), {})["HostConfig"]
        assert (host["RestartPolicy"], host["AutoRemove"]) == ({"Name": "no"}, False)


def test_a_rank_is_on_the_hosts_own_network_with_the_devices_of_its_link() -> None:
    seat = Seat(1, 2, "a", "i/duo/1", has_rdma=True)
    plan = make_plan(image="vllm/vllm-openai:v0.26.0", engine="vllm", server=None, seat=seat)
    launch = supervised_container_of(plan, 8080, "abc/duo/7", has_gpu=True)
    host = render_create(launch, {})["HostConfig"]
    assert host["NetworkMode"] == "host" and "PortBindings" not in host
    assert host["Devices"] == [
        {"PathOnHost": "/dev/infiniband", "PathInContainer": "/dev/infiniband", "CgroupPermissions": "rwm"}
    ]
    assert "0.0.0.0" not in launch.words
    by_sockets = msgspec.structs.replace(plan, seat=msgspec.structs.replace(seat, has_rdma=False))
    assert supervised_container_of(by_sockets, 8080, "abc/duo/7", has_gpu=True).devices == ()


def test_gpus_are_asked_for_as_each_engine_knows_them() -> None:
    def requests(gpus: str | None, by_cdi: bool = False) -> list[object]:
        body = render_create(make_container(env_file=None, gpus=gpus), {}, by_cdi)
        return list(body["HostConfig"].get("DeviceRequests", []))

    assert requests("all") == [{"Driver": "nvidia", "Count": -1, "Capabilities": [["gpu"]]}]
    by_name = {"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=0"], "Capabilities": [["gpu"]]}
    assert requests("nvidia.com/gpu=0") == requests("nvidia.com/gpu=0", by_cdi=True) == [by_name]
    assert requests("all", by_cdi=True) == [{**by_name, "DeviceIDs": ["nvidia.com/gpu=all"]}]
    assert requests(None) == []


def test_what_was_not_asked_for_is_left_out() -> None:
    body = render_create(make_small_container(ipc=None), {})
    assert body.keys() == {"Image", "Tty", "HostConfig"}
    assert body["HostConfig"]["NetworkMode"] == "host"
    assert not {"PortBindings", "Mounts", "ShmSize", "Ulimits", "IpcMode"} & body["HostConfig"].keys()


def test_a_secret_in_plain_sight_and_a_file_that_the_api_cannot_read_are_refused() -> None:
    with fails(Refused, "would show a secret"):
        render_create(make_container(env_file=None, environment=(("HF_TOKEN", "hf_abcdefghijklmnop"),)), {})
    with fails(Refused, "cannot read /home/alice"):
        render_create(make_container(), {})


def test_a_container_of_ours_can_be_found_again_and_asks_for_no_gpu_where_there_is_none() -> None:
    plan = make_plan(Setting("context_total", 1024, "a test"), image="ggml-org/llama.cpp:server")
    launch = supervised_container_of(plan, 8080, "abc/small/7", has_gpu=False)
    assert dict(launch.labels) == {
        "stoker.instance": "abc", "stoker.service": "small", "stoker.launch": "abc/small/7", "stoker.plan": "p1",
    }  # fmt: skip
    assert dict(launch.environment)["STOKER_ENGINE"] == "abc/small/7"
    assert launch.gpus is None
    assert supervised_container_of(plan, 8080, "abc/small/7", has_gpu=True).gpus == "all"
    assert (launch.entrypoint, launch.words[:2]) == ("llama-server", ("--model", "/model/small.gguf"))
    assert "abc" not in json.dumps(launch.words)
