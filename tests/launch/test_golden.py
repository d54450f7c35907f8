"""What is rendered, to the letter; STOKER_WRITE_GOLDEN=1 writes the files again after a change that is meant."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from launch_samples import make_container, make_overlay, make_small_container, make_unit
from stoker.launch.compose import render_compose
from stoker.launch.container import render_docker_run, render_podman_run
from stoker.launch.dockerfile import render_overlay
from stoker.launch.quadlet import render_quadlet
from stoker.launch.sudoers import render_sudoers
from stoker.launch.unit import render_unit

GOLDEN = Path(__file__).parent / "golden"
DIGEST = "sha256:" + "cd" * 32
CLIENT = make_unit(
    kind="oneshot", argv=("/opt/stoker/bin/stoker", "up", "coder"), stop_argv=("/opt/stoker/bin/stoker", "down", "coder"),
    wants=("stoker.service",), start_timeout_s=None, restart_pause_s=None, environment=(), env_file=None, conditions=(),
)  # fmt: skip
DAEMON = make_unit(
    name="stoker", argv=("/opt/stoker/bin/stoker", "serve"), keeps_children=True, restart_pause_s=2, restart_tries=5,
    restart_window_s=600, final_exit_codes=(2, 3), environment=(), env_file=None, conditions=(),
)  # fmt: skip

RENDERED = {
    "docker-run.txt": "\n".join(render_docker_run(make_container())) + "\n",
    "docker-run-small.txt": "\n".join(render_docker_run(make_small_container(at_exit="remove"), detached=False)) + "\n",
    "podman-run.txt": "\n".join(render_podman_run(make_container())) + "\n",
    "compose.yaml": render_compose([make_container(), make_small_container(gpus="nvidia.com/gpu=0", read_only=True)]),
    "coder.container": render_quadlet(make_container()),
    "small.container": render_quadlet(make_small_container(user="1000:1000", read_only=True)),
    "engine.service": render_unit(make_unit()),
    "daemon.service": render_unit(DAEMON),
    "client.service": render_unit(CLIENT),
    "sudoers": render_sudoers("alice", ("coder", "qwen3.6")),
    "overlay.Dockerfile": render_overlay(make_overlay()),
    "overlay-pinned.Dockerfile": render_overlay(make_overlay(digest=DIGEST, checksums=())),
}


@pytest.mark.parametrize("name", RENDERED)
def test_rendered_text_is_the_golden_one(name: str) -> None:
    file = GOLDEN / name
    if os.environ.get("STOKER_WRITE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(RENDERED[name])
    assert file.read_text() == RENDERED[name]


def test_no_golden_file_is_left_over() -> None:
    assert {file.name for file in GOLDEN.iterdir()} == set(RENDERED)


def test_ports_are_published_on_loopback_unless_somebody_says_otherwise() -> None:
    argv = render_docker_run(make_container())
    assert argv[argv.index("--publish") + 1] == "127.0.0.1:30000:30000"


@pytest.mark.parametrize("at_exit", ["keep", "remove", "on-failure", "always", "unless-stopped"])
def test_removing_and_restarting_are_never_asked_for_together(at_exit: str) -> None:
    for argv in (render_docker_run(make_container(at_exit=at_exit)), render_podman_run(make_container(at_exit=at_exit))):
        assert ("--rm" in argv) == (at_exit == "remove")
        assert ("--restart" in argv) == (at_exit not in ("keep", "remove"))


@pytest.mark.parametrize(
    ("image", "full"),
    [
        ("ubuntu", "docker.io/library/ubuntu"), ("ubuntu:24.04", "docker.io/library/ubuntu:24.04"),
        ("vllm/vllm-openai", "docker.io/vllm/vllm-openai"), ("nvcr.io/nvidia/vllm:26.05", "nvcr.io/nvidia/vllm:26.05"),
        ("localhost/mine", "localhost/mine"), ("box:5000/mine", "box:5000/mine"),
    ],
)  # fmt: skip
def test_podman_gets_the_whole_name_of_an_image(image: str, full: str) -> None:
    assert render_podman_run(make_small_container(image=image))[-1] == full
