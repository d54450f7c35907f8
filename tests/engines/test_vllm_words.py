"""What is particular to vLLM's words and to what it says of its death."""

from __future__ import annotations

from pathlib import Path

import pytest

from stoker.engines.vllm import ENGINE
from support import make_plan

MODULE = ("/opt/venv/bin/python", "-m", "vllm.entrypoints.openai.api_server")


def test_the_command_gets_the_model_as_its_first_word() -> None:
    assert ENGINE.render(make_plan(), 1).argv[:3] == ("vllm", "serve", "/models/small.gguf")


def test_the_module_gets_the_model_by_its_flag_since_it_drops_a_word_alone() -> None:
    assert ENGINE.render(make_plan(program=MODULE), 1).argv[:5] == (*MODULE, "--model", "/models/small.gguf")


@pytest.mark.parametrize(
    ("said", "free"),
    [
        ("Available memory on node 0 (9.11/11.21 GiB) on startup is less than desired CPU memory utilization", "9.11"),
        ("Available memory on node 1 (1.2/11.21 GiB) on kv cache allocation is less than requested memory for kv", "1.2"),
    ],
)
def test_a_memory_node_without_room_is_explained(said: str, free: str) -> None:
    explained = ENGINE.explain(["(Worker pid=7) Traceback", f"ValueError: {said} (4.0 GiB)."])
    assert explained is not None
    assert f"only {free} GiB were free on the memory node it runs on" in explained


def test_a_hub_that_is_not_reached_is_explained() -> None:
    """The last words of 0.32.0 without a network, told to serve what it did not find."""
    lines = [
        "    raise OSError(",
        "OSError: We couldn't connect to 'https://hub.example' to load the files, and couldn't find them",
    ]
    assert "it looked on the hub" in (ENGINE.explain(lines) or "")


def test_a_killed_engine_core_is_told_from_a_server_that_ended_well() -> None:
    """The server ends with code 0 then, after `data: [DONE]` behind the error event."""
    log = Path(__file__).parent / "logs" / "vllm-0.32.0-cpu-core-killed.log"
    assert "its engine process ended under it" in (ENGINE.explain(log.read_text().splitlines()) or "")
