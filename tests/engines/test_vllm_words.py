"""What is particular to vLLM's words."""

from __future__ import annotations

from stoker.engines.vllm import ENGINE
from support import make_plan

MODULE = ("/opt/venv/bin/python", "-m", "vllm.entrypoints.openai.api_server")


def test_the_command_gets_the_model_as_its_first_word() -> None:
    assert ENGINE.render(make_plan(), 1).argv[:3] == ("vllm", "serve", "/models/small.gguf")


def test_the_module_gets_the_model_by_its_flag_since_it_drops_a_word_alone() -> None:
    assert ENGINE.render(make_plan(program=MODULE), 1).argv[:5] == (*MODULE, "--model", "/models/small.gguf")
