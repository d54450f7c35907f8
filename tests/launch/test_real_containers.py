"""What Podman and docker compose make of our containers, where they are installed."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from launch_samples import HOSTILE_WORDS, make_container, make_small_container
from real_tools import need, need_root, run
from stoker.launch.compose import render_compose
from stoker.launch.container import render_podman_run
from stoker.launch.quadlet import render_quadlet
from stoker.records import Mount, Publish
from systemd_syntax import exec_argv


class Podman:
    """The real Podman with a store of its own."""

    def __init__(self, folder: Path) -> None:
        need_root()
        self._argv = (
            need("podman"), f"--root={folder}/root", f"--runroot={folder}/run", "--storage-driver=vfs",
            "--cgroup-manager=cgroupfs", "--events-backend=none",
        )  # fmt: skip
        with tarfile.open(folder / "empty.tar", "w") as archive:
            archive.addfile(tarfile.TarInfo("empty"))
        self("import", str(folder / "empty.tar"), "docker.io/library/ubuntu:latest")

    def __call__(self, *words: str) -> str:
        done = subprocess.run((*self._argv, *words), capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    folder = Path(
        tempfile.mkdtemp()
    )  # podman refuses a place of over 50 letters, and pytest's is as long as its process's name
    yield Podman(folder)
    shutil.rmtree(folder, ignore_errors=True)


def test_podman_understands_every_option_and_word(podman: Podman, tmp_path: Path) -> None:
    (tmp_path / "coder nvfp4").mkdir()
    (tmp_path / "env").write_text("VLLM_API_KEY=k$1'\"\n")
    launch = make_container(
        name="whole", image="ubuntu", words=HOSTILE_WORDS, environment=(("EXTRA", "a $b %c"),),
        env_file=str(tmp_path / "env"),
        mounts=(Mount(f"{tmp_path}/coder nvfp4", "/model"), Mount(str(tmp_path), "/cache", False)),
        publish=(Publish(30000, 30001),), gpus=None, ulimits=(("nofile", 1000),), user="1000:1000", read_only=True,
    )  # fmt: skip
    seen = _create(podman, render_podman_run(launch, detached=False))
    assert seen["Config"]["Cmd"] == list(HOSTILE_WORDS)
    assert seen["Config"]["Entrypoint"] in ("python3", ["python3"])
    assert {"EXTRA=a $b %c", "VLLM_API_KEY=k$1'\""} <= set(seen["Config"]["Env"])
    assert seen["Config"]["Labels"]["stoker.service"] == "coder"
    assert {(m["Source"], m["Destination"], m["RW"]) for m in seen["Mounts"]} == {
        (f"{tmp_path}/coder nvfp4", "/model", False), (str(tmp_path), "/cache", True),
    }  # fmt: skip
    host = seen["HostConfig"]
    assert host["PortBindings"] == {"30000/tcp": [{"HostIp": "127.0.0.1", "HostPort": "30001"}]}
    assert (host["ShmSize"], host["ReadonlyRootfs"]) == (launch.shm_size_bytes, True)
    assert (host["RestartPolicy"]["Name"], host["RestartPolicy"]["MaximumRetryCount"]) == ("on-failure", 3)
    assert {"Name": "RLIMIT_NOFILE", "Soft": 1000, "Hard": 1000} in host["Ulimits"]


def test_podman_puts_a_small_container_on_the_hosts_network(podman: Podman) -> None:
    seen = _create(podman, render_podman_run(make_small_container(at_exit="remove", words=("sh",)), detached=False))
    assert seen["HostConfig"]["NetworkMode"] == "host"
    assert seen["HostConfig"]["AutoRemove"] is True


def _create(podman: Podman, argv: tuple[str, ...]) -> dict[str, Any]:
    assert argv[:2] == ("podman", "run")
    # Starting needs cgroups; what was understood shows without. Limits cannot be raised in every place where tests run.
    limits = (
        ("--ulimit", "nproc=1000:1000") if "--ulimit" in argv else ("--ulimit", "nofile=1000:1000", "--ulimit", "nproc=1000")
    )
    identity = podman("create", *limits, *argv[2:]).strip()
    seen: dict[str, Any] = json.loads(podman("inspect", identity))[0]
    podman("rm", identity)
    return seen


QUADLET = shutil.which("quadlet", path="/usr/libexec/podman:/usr/lib/podman") or ""


@pytest.mark.elsewhere(bool(QUADLET), "Podman 4.4 or later, whose generator reads quadlets (Debian 12 has 4.3)")
def test_podmans_generator_makes_the_same_command_of_a_quadlet(tmp_path: Path) -> None:
    words = tuple(word for word in HOSTILE_WORDS if word != ";")
    launch = make_container(words=words, environment=(("EXTRA", 'a "b" $c %d \\'),))
    (tmp_path / "coder.container").write_text(render_quadlet(launch))
    made = run(QUADLET, "-dryrun", QUADLET_UNIT_DIRS=str(tmp_path))
    argv = exec_argv(made.replace("--cidfile=%t/%N.cid", ""))  # the generator's own
    assert argv[-len(words) :] == list(words)
    options = set(itertools.pairwise(argv))
    assert ("--env", 'EXTRA=a "b" $c %d \\') in options
    assert {("--publish", "127.0.0.1:30000:30000"), ("--device", "nvidia.com/gpu=all")} <= options
    assert {("--shm-size", "17179869184"), ("-v", "/models/coder nvfp4:/model:ro")} <= options
    assert "--entrypoint=python3" in argv


def _find_compose() -> tuple[str, ...]:
    """Returns the words that run docker compose 2, or none."""
    for words in (("docker", "compose"), ("docker-compose",)):
        if shutil.which(words[0]) and re.search(r"version v?2\.", run(*words, "version", code=None)):
            return words
    return ()


COMPOSE = _find_compose()


@pytest.mark.elsewhere(bool(COMPOSE), "docker compose 2")
def test_docker_compose_understands_the_file(tmp_path: Path) -> None:
    file = tmp_path / "compose.yaml"
    (tmp_path / "env").write_text("HF_TOKEN=x\n")
    launch = make_container(words=HOSTILE_WORDS, environment=(("EXTRA", "a $b ${c} 1"),), env_file=str(tmp_path / "env"))
    file.write_text(render_compose([launch, make_small_container(gpus="nvidia.com/gpu=all", words=("1e3",))]))
    tree = json.loads(run(*COMPOSE, "-f", file, "config", "--format", "json"))["services"]
    coder, small = tree["stoker-coder"], tree["small"]
    assert [word.replace("$$", "$") for word in coder["command"]] == list(HOSTILE_WORDS)
    assert coder["environment"]["EXTRA"].replace("$$", "$") == "a $b ${c} 1"
    assert coder["deploy"]["resources"]["reservations"]["devices"][0]["count"] == -1
    assert coder["ports"][0]["host_ip"] == "127.0.0.1"
    assert coder["volumes"][0]["source"] == "/models/coder nvfp4"
    assert small["command"] == ["1e3"]
    assert small["network_mode"] == "host"
