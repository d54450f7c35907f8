"""What an image on this machine holds, from what docker and podman print of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from real_tools import OwnPodman
from stoker.box import LocalBox, RecordedBox
from stoker.facts.engine.image import entry_words, find_image, parse_image, read_image
from stoker.records import Environment
from support import BOXES

UBUNTU = {"org.opencontainers.image.ref.name": "ubuntu", "org.opencontainers.image.version": "24.04"}


def inspected(config: dict[str, Any], **changes: Any) -> str:
    """Returns what an inspection prints of an image with this configuration."""
    return json.dumps([{"Id": "sha256:ab", "Architecture": "arm64", "Size": 7, "Config": config, **changes}])


def parsed(config: dict[str, Any], **changes: Any) -> Environment:
    found = parse_image("an/image:1", inspected(config, **changes))
    assert found is not None
    return found


def test_vllms_own_image_is_told_by_its_entrypoint_and_ubuntus_label_is_not_its_version() -> None:
    found = read_image(RecordedBox(BOXES / "gb10-128gb"), "vllm/vllm-openai:v0.26.0-cu130")
    assert found == Environment(
        kind="image", name="vllm/vllm-openai:v0.26.0-cu130", engine="vllm", version=None, cuda="13.0.1", arch="aarch64",
        python="3.12", digest="sha256:3f1c0d5bb0a1f5ad2b2ee0ad2fb56fd9b9f3b1d7f2ac8f3ae7c1b7b1a7d9c0e4",
        size_bytes=22154438021, entrypoint=("vllm", "serve"), runtime="docker",
    )  # fmt: skip


def test_an_image_that_was_never_pulled_is_unknown() -> None:
    assert read_image(RecordedBox(BOXES / "gb10-128gb"), "no/such") is None


@pytest.mark.parametrize(
    ("config", "engine"),
    [
        ({"Entrypoint": ["python3", "-m", "vllm.entrypoints.openai.api_server"]}, "vllm"),
        ({"Cmd": ["/opt/venv/bin/vllm", "serve"]}, "vllm"),
        ({"Entrypoint": ["/opt/nvidia/entry.sh"], "Cmd": ["python3", "-m", "sglang.launch_server"]}, "sglang"),
        ({"Entrypoint": ["/app/llama-server"]}, "llamacpp"),
        ({"Entrypoint": "/app/llama-server --host 0.0.0.0"}, "llamacpp"),
        ({"Env": ["LLAMA_ARG_HOST=0.0.0.0"]}, "llamacpp"),
        ({"Env": ["SGLANG_X=1"], "Entrypoint": ["/bin/bash"]}, "sglang"),
        ({"Labels": {"org.opencontainers.image.source": "https://github.com/sgl-project/sglang"}}, "sglang"),
        ({"Labels": UBUNTU, "Cmd": ["/bin/bash"], "Env": ["CUDA_VERSION=13.0.1"]}, None),
        ({"Cmd": ["my-vllm-proxy"]}, None),
        ({}, None),
    ],
)
def test_the_engine_is_told_by_command_variables_or_labels(config: dict[str, Any], engine: str | None) -> None:
    assert parsed(config).engine == engine


@pytest.mark.parametrize(
    ("config", "version"),
    [
        ({"Cmd": ["vllm"], "Env": ["VLLM_VERSION=0.10.1.1+9a2d5a3"]}, "0.10.1.1+9a2d5a3"),
        ({"Env": ["SGL_VERSION=v0.5.12"]}, "0.5.12"),
        ({"Env": ["SGL_VERSION=main"]}, None),
        ({"Cmd": ["vllm"], "Labels": UBUNTU}, None),
        ({"Labels": {"org.opencontainers.image.title": "vllm", "org.opencontainers.image.version": "0.20.0"}}, "0.20.0"),
        ({"Env": ["VLLM_VERSION=0.20.0", "SGL_VERSION=0.5.9"], "Cmd": ["sglang serve"]}, "0.5.9"),
        ({"Labels": {"org.opencontainers.image.version": "0.20.0"}}, None),
    ],
)
def test_the_version_is_the_engines_own_or_unknown(config: dict[str, Any], version: str | None) -> None:
    assert parsed(config).version == version


def test_podmans_form_is_read_too() -> None:
    found = parsed({"Cmd": ["vllm"]}, Id="f" * 64, Architecture="amd64", Labels=None)
    assert (found.digest, found.arch) == (f"sha256:{'f' * 64}", "x86_64")


def test_an_architecture_of_another_kind_is_told_as_it_stands_there() -> None:
    assert parsed({}, Architecture="riscv64").arch == "riscv64"
    assert parsed({}, Architecture="").arch is None


@pytest.mark.parametrize("printed", [None, "", "[]", "Error: no such image", "[1]", '"text"'])
def test_where_nothing_was_printed_of_an_image_nothing_is_known(printed: str | None) -> None:
    assert parse_image("x", printed) is None


TREE = st.recursive(
    st.none() | st.booleans() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@settings(max_examples=50)
@given(TREE, TREE, TREE)
def test_no_inspection_breaks_the_reading(env: Any, words: Any, labels: Any) -> None:
    config = {"Env": env, "Entrypoint": words, "Cmd": words, "Labels": labels}
    for tree in (config, env, [env]):
        printed = json.dumps([{"Config": tree, "Id": words, "Architecture": words, "Size": labels, "Labels": labels}])
        found = parse_image("x", printed)
        assert found is not None
        assert found.name == "x"


def test_a_real_image_of_podmans_is_read(podman: OwnPodman, monkeypatch: pytest.MonkeyPatch) -> None:
    podman.make_image(
        "localhost/ours:1", {}, 'ENTRYPOINT ["vllm", "serve"]', "ENV VLLM_VERSION=0.26.0", "ENV CUDA_VERSION=13.0.1"
    )
    for name, value in podman.environment.items():
        monkeypatch.setenv(name, value)
    box = LocalBox()
    found = find_image(box, "localhost/ours:1")
    assert found is not None
    assert (found.engine, found.version, found.cuda, found.runtime) == ("vllm", "0.26.0", "13.0.1", "podman")
    assert found.arch == box.uname()[2]
    assert found.digest is not None
    assert len(found.digest) == len("sha256:") + 64
    assert find_image(box, "--all") is None


@pytest.mark.parametrize(
    ("entrypoint", "engine", "words"),
    [
        (("vllm", "serve"), "vllm", ("vllm", "serve")),
        (("/app/llama-server",), "llamacpp", ("/app/llama-server",)),
        (("vllm", "serve"), "sglang", ()),
        (("/opt/nvidia/entry.sh",), "sglang", ()),
        ((), "vllm", ()),
    ],
)
def test_an_entrypoint_starts_a_server_where_it_names_the_engine(
    entrypoint: tuple[str, ...], engine: str, words: tuple[str, ...]
) -> None:
    assert entry_words(Environment("image", "x", entrypoint=entrypoint), engine) == words
