"""What is made of a container's own description, with documents as docker and podman write them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.plan.adopting_container import host_path, host_port, variables_of_container, words_of_container

FOUND: dict[str, Any] = {
    "Config": {
        "Entrypoint": ["python3", "-m", "sglang.launch_server"],
        "Cmd": ["--model-path", "/model", "--port", "30000"],
        "Env": ["PATH=/bin", "SGLANG_ENABLE_SPEC_V2=True", "EMPTY="],
    },
    "HostConfig": {"NetworkMode": "bridge"},
    "NetworkSettings": {
        "Ports": {"30000/tcp": [{"HostIp": "10.0.0.1", "HostPort": "1"}, {"HostIp": "127.0.0.1", "HostPort": "30001"}]}
    },
    "Mounts": [
        {"Type": "bind", "Source": "/ai/models/mistral", "Destination": "/model"},
        {"Type": "volume", "Destination": "/v"},
    ],
}


def test_words_and_variables_are_those_of_its_start() -> None:
    assert words_of_container(FOUND)[:3] == ("python3", "-m", "sglang.launch_server")
    assert words_of_container(FOUND)[-1] == "30000"
    assert words_of_container({"Config": {"Entrypoint": "vllm serve", "Cmd": None}}) == ("vllm", "serve")
    assert variables_of_container(FOUND) == {"PATH": "/bin", "SGLANG_ENABLE_SPEC_V2": "True", "EMPTY": ""}


@pytest.mark.parametrize(
    ("network", "inside", "port"), [("bridge", 30000, 30001), ("bridge", 8000, None), ("host", 8000, 8000)]
)
def test_a_port_is_that_of_loopback_where_it_is_published(network: str, inside: int, port: int | None) -> None:
    assert host_port({**FOUND, "HostConfig": {"NetworkMode": network}}, inside) == port


@pytest.mark.parametrize(
    ("inside", "host"),
    [
        ("/model", "/ai/models/mistral"),
        ("/model/a/b.gguf", "/ai/models/mistral/a/b.gguf"),
        ("/models", None),
        ("/v/x", None),
    ],
)
def test_a_model_is_looked_for_where_its_mount_comes_from(inside: str, host: str | None) -> None:
    assert host_path(FOUND, inside) == host


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3), max_leaves=6
)


@given(st.fixed_dictionaries({"Config": st.fixed_dictionaries({"Entrypoint": json_values, "Cmd": json_values})}))
def test_no_description_breaks_the_reading(found: dict[str, Any]) -> None:
    assert all(isinstance(word, str) for word in words_of_container(found))
