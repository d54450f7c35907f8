"""What a plan becomes in a container or a unit: paths, mounts, addresses, and what may not contradict itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stoker.errors import Refused
from stoker.launch.container import render_docker_run
from stoker.launch.from_plan import container_of, container_unit_of, launch_of, unit_of
from stoker.launch.reasons import option_reasons
from stoker.launch.unit import render_unit
from stoker.records import ContainerLaunch, Mount, Plan, Setting
from support import fails, make_plan
from systemd_syntax import exec_argv

MODEL, DRAFT, PORT = "/srv/models/tiny", "/srv/models/eagle", 30000
HUB = "/home/a/.cache/huggingface/hub"
TINY_IN_HUB = f"{HUB}/models--org--tiny/snapshots/0123abc"


def plan(engine: str = "vllm", mounts: tuple[tuple[str, str], ...] = (), path: str = MODEL, **flags: Any) -> Plan:
    """Returns a plan for a container; flags are named with underscores."""
    settings = [Setting(f"--{name.replace('_', '-')}", value, "a test") for name, value in flags.items()]
    made: Plan = make_plan(*settings, engine=engine, image="vllm/vllm-openai:v0.26.0", model_path=path, mounts=mounts)
    return made


def container(**facts: Any) -> ContainerLaunch:
    """Returns the container of a plan."""
    return container_of(plan(**facts), PORT)


def value_of(launch: ContainerLaunch, flag: str) -> str:
    """Returns the value of a flag that is given once."""
    assert launch.words.count(flag) == 1
    return launch.words[launch.words.index(flag) + 1]


def test_the_models_paths_are_the_containers_wherever_they_stand_as_a_whole() -> None:
    config = json.dumps({"method": "eagle", "model": DRAFT, "n": [3, f"{DRAFT}/head"]})
    launch = container(
        tokenizer=f"{MODEL}/", speculative_config=config, chat_template=f"{MODEL}/c.jinja", x=f"{MODEL}2", y=f"at {MODEL}",
        z=(MODEL, 1), switch=True,
    )  # fmt: skip
    assert launch.words[1] == "/model"
    assert (value_of(launch, "--tokenizer"), value_of(launch, "--chat-template")) == ("/model", "/model/c.jinja")
    assert (value_of(launch, "--x"), value_of(launch, "--y")) == (f"{MODEL}2", f"at {MODEL}")
    assert value_of(launch, "--z") == "/model"
    assert json.loads(value_of(launch, "--speculative-config")) == {
        "method": "eagle", "model": "/draft", "n": [3, "/draft/head"]
    }  # fmt: skip
    assert launch.mounts == (Mount(MODEL, "/model"), Mount(DRAFT, "/draft"))


def test_sglangs_draft_and_tokenizer_are_moved_too() -> None:
    launch = container(engine="sglang", speculative_draft_model_path=DRAFT, tokenizer_path=MODEL)
    assert value_of(launch, "--speculative-draft-model-path") == "/draft"
    assert value_of(launch, "--tokenizer-path") == value_of(launch, "--model-path") == "/model"


@pytest.mark.parametrize("config", ["{", "[]", "[" * 5000, '{"model": 5}', "text", '{"model": "org/name"}'])
def test_a_configuration_that_names_no_folder_stays_as_it_was_written(config: str) -> None:
    launch = container(speculative_config=config)
    assert value_of(launch, "--speculative-config") == config
    assert launch.mounts == (Mount(MODEL, "/model"),)


def test_a_draft_within_the_models_folder_is_mounted_with_it() -> None:
    launch = container(speculative_draft_model_path=f"{MODEL}/mtp")
    assert value_of(launch, "--speculative-draft-model-path") == "/model/mtp"
    assert launch.mounts == (Mount(MODEL, "/model"),)


def test_a_snapshot_of_the_hub_is_mounted_with_the_blobs_that_it_links_to() -> None:
    draft = f"{HUB}/models--org--eagle/snapshots/fff"
    launch = container(path=TINY_IN_HUB, speculative_draft_model_path=draft, tokenizer=TINY_IN_HUB)
    assert launch.words[1] == value_of(launch, "--tokenizer") == "/hub/models--org--tiny/snapshots/0123abc"
    assert value_of(launch, "--speculative-draft-model-path") == "/hub/models--org--eagle/snapshots/fff"
    assert launch.mounts == tuple(
        Mount(f"{HUB}/models--org--{name}", f"/hub/models--org--{name}") for name in ("tiny", "eagle")
    )


def test_two_snapshots_of_one_repository_share_their_mount() -> None:
    launch = container(path=TINY_IN_HUB, speculative_draft_model_path=f"{HUB}/models--org--tiny/snapshots/9")
    assert len(launch.mounts) == 1


def test_a_gguf_is_mounted_with_the_parts_beside_it() -> None:
    launch = container(path="/srv/m/big-00001-of-00002.gguf")
    assert launch.words[1] == "/model/big-00001-of-00002.gguf"
    assert launch.mounts == (Mount("/srv/m", "/model"),)


def test_what_is_mounted_twice_is_mounted_once_and_volumes_are_volumes() -> None:
    own = ((f"{MODEL}/", "/model:ro"), ("hf_cache", "/root/.cache/huggingface"), ("/t", "/t:ro,z"), ("/t", "/t/"))
    launch = container(mounts=own)
    assert launch.mounts == (
        Mount(MODEL, "/model"), Mount("hf_cache", "/root/.cache/huggingface", False), Mount("/t", "/t"),
    )  # fmt: skip
    assert "type=volume,source=hf_cache,target=/root/.cache/huggingface" in render_docker_run(launch)


@pytest.mark.parametrize("own", [(("/other", "/model"),), (("/a", "/x"), ("/b", "/x/"))])
def test_two_folders_at_one_place_are_refused(own: tuple[tuple[str, str], ...]) -> None:
    with fails(Refused, "small would mount", "another place inside the container"):
        container(mounts=own)


@pytest.mark.parametrize("names", [("host", "port"), ("host",), ("port",)])
def test_an_engine_is_told_once_where_it_listens(names: tuple[str, ...]) -> None:
    flags: dict[str, Any] = dict.fromkeys(names, "9999")
    launch = container(**flags, dist_init_addr="127.0.0.1")
    assert (value_of(launch, "--host"), value_of(launch, "--port")) == ("0.0.0.0", "30000")
    assert [(one.host_port, one.container_port) for one in launch.publish] == [(PORT, PORT)]
    assert value_of(launch, "--dist-init-addr") == "127.0.0.1"
    assert launch_of(plan(**flags), PORT).argv.count("--port") == 1
    assert (
        unit_of(plan(**flags), PORT, "alice").argv.count("--host") == launch_of(plan(**flags), 1).argv.count("--host") == 1
    )


def test_a_units_container_stays_with_its_client_and_is_removed_at_its_end() -> None:
    wanted = plan()
    launch = container_of(wanted, PORT)
    unit = container_unit_of(wanted, launch, "/usr/bin/docker")
    text = render_unit(unit, option_reasons(launch))
    argv = exec_argv(text)
    assert argv[:3] == ["/usr/bin/docker", "run", "--rm"]
    assert "--detach" not in argv
    assert argv[argv.index("--entrypoint") + 1 :][:1] == ["vllm"]
    assert tuple(argv[-len(launch.words) :]) == launch.words
    assert exec_argv(text, "ExecStop") == ["/usr/bin/docker", "stop", "-t", "60", "stoker-small"]
    assert "After=docker.service" in text
    assert "OOMScoreAdjust" not in text  # the engine is no child of the client
    for option in ("--mount", "--publish", "--shm-size", "--ulimit", "--gpus"):
        assert f"\n# {option}: " in text


def test_a_plan_without_an_image_is_no_container() -> None:
    with fails(Refused, "names no image"):
        container_of(make_plan(), PORT)
