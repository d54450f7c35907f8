"""Container engines: whether they are there, whether they answer, and whether they can hand out NVIDIA's GPUs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.box import RecordedBox
from stoker.facts.machine.containers import ContainerEngineName, read_container_engine
from stoker.facts.machine.printed import find_json
from stoker.records import ContainerEngine
from support import BOXES

DOCKER_INFO: dict[str, Any] = {
    "ServerVersion": "28.5.1", "Driver": "overlay2", "Runtimes": {"runc": {}, "io.containerd.runc.v2": {}},
}  # fmt: skip
PODMAN_INFO: dict[str, Any] = {
    "host": {"ociRuntime": {"name": "crun"}}, "store": {"graphDriverName": "vfs"}, "version": {"Version": "5.4.2"},
}  # fmt: skip
GPU_SPEC = '{\n  "cdiVersion": "0.5.0",\n  "kind": "nvidia.com/gpu"\n}'


def write_box(
    folder: Path, name: str, version: str, info: dict[str, Any] | None, files: dict[str, str] | None = None
) -> RecordedBox:
    """Writes a machine that has one container engine."""
    files = {f"root/usr/bin/{name}": "", f"run/{name}_--version.txt": version, **(files or {})}
    if info is not None:
        files[f"run/{name}_info_--format_json.txt"] = json.dumps(info)
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return RecordedBox(folder)


def test_docker_with_nvidias_runtime_offers_gpus() -> None:
    assert read_container_engine(RecordedBox(BOXES / "gb10-128gb"), "docker") == ContainerEngine(
        "docker", "/usr/bin/docker", "28.5.1", True, "28.5.1", ("io.containerd.runc.v2", "nvidia", "runc"), "overlay2",
        ("/etc/cdi/nvidia.yaml",), True,
    )  # fmt: skip


def test_an_engine_that_is_not_installed_is_none() -> None:
    assert read_container_engine(RecordedBox(BOXES / "gb10-128gb"), "podman") is None


def test_a_daemon_that_does_not_answer_leaves_unknown_what_only_it_knows(tmp_path: Path) -> None:
    found = read_container_engine(write_box(tmp_path, "docker", "Docker version 28.2.2, build e6534b4", None), "docker")
    assert found == ContainerEngine("docker", "/usr/bin/docker", "28.2.2", answers=False)
    assert (found.runtimes, found.offers_nvidia) == (None, None)


def test_docker_without_runtime_hook_or_cdi_offers_no_gpus(tmp_path: Path) -> None:
    found = read_container_engine(write_box(tmp_path, "docker", "Docker version 27.0.3", DOCKER_INFO), "docker")
    assert found is not None
    assert found.offers_nvidia is False
    assert found.runtimes == ("io.containerd.runc.v2", "runc")


@pytest.mark.parametrize(
    ("info", "files", "offers"),
    [
        (DOCKER_INFO, {"root/usr/bin/nvidia-container-runtime-hook": ""}, True),
        (DOCKER_INFO, {"root/etc/cdi/nvidia.json": GPU_SPEC}, False),  # this docker does not look there
        (DOCKER_INFO | {"CDISpecDirs": ["/etc/cdi"]}, {"root/etc/cdi/nvidia.json": GPU_SPEC}, True),
        (DOCKER_INFO | {"CDISpecDirs": ["/etc/cdi"]}, {"root/etc/cdi/nic.yaml": "kind: example.com/nic"}, False),
    ],
)
def test_docker_offers_gpus_by_a_hook_or_by_cdi_too(
    tmp_path: Path, info: dict[str, Any], files: dict[str, str], offers: bool
) -> None:
    found = read_container_engine(write_box(tmp_path, "docker", "Docker version 28.5.1", info, files), "docker")
    assert found is not None
    assert found.offers_nvidia is offers


@pytest.mark.parametrize(
    ("files", "offers"),
    [
        ({}, False),
        ({"root/var/run/cdi/nvidia.yaml": "cdiVersion: 0.6.0\nkind: nvidia.com/gpu\n"}, True),
        ({"root/etc/cdi/nvidia.json": GPU_SPEC}, True),
        ({"root/etc/cdi/nvidia.yaml.bak": "kind: nvidia.com/gpu"}, False),
        ({"root/etc/cdi/nvidia.yaml": "# kind: nvidia.com/gpu"}, False),
    ],
)
def test_podman_offers_gpus_by_cdi_alone(tmp_path: Path, files: dict[str, str], offers: bool) -> None:
    found = read_container_engine(write_box(tmp_path, "podman", "podman version 5.4.2", PODMAN_INFO, files), "podman")
    assert found is not None
    assert (found.version, found.runtimes, found.storage, found.offers_nvidia) == ("5.4.2", ("crun",), "vfs", offers)


def test_a_docker_that_is_podman_by_another_name_is_no_docker(tmp_path: Path) -> None:
    assert read_container_engine(write_box(tmp_path, "docker", "podman version 5.4.2", PODMAN_INFO), "docker") is None


@pytest.mark.parametrize("name", ["docker", "podman"])
@settings(max_examples=30)
@given(
    info=st.recursive(
        st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_no_answer_of_an_engine_breaks_the_reading(
    tmp_path_factory: pytest.TempPathFactory, name: ContainerEngineName, info: Any
) -> None:
    folder = tmp_path_factory.mktemp("box")
    keys = ("Runtimes", "CDISpecDirs", "ServerVersion", "host", "store", "version")
    found = read_container_engine(write_box(folder, name, f"{name} version 1.2", dict.fromkeys(keys, info)), name)
    assert found is not None
    assert found.answers


@pytest.mark.parametrize(
    ("printed", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ('WARNING: [x\n[1, 2]\nmore', [1, 2]),
        ('{broken\n  {"a": 2}', {"a": 2}),
        ("no JSON", None), ("", None), (None, None), ("[" * 100_000, None),
    ],
)  # fmt: skip
def test_json_is_found_among_warnings(printed: str | None, found: Any) -> None:
    assert find_json(printed) == found
