"""The shipped demo model, asked through llama.cpp's server."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gguf
import httpx
import pytest

HERE = Path(__file__).parent
MODELS = HERE.parent.parent / "models" / "demo"
TARGET, DRAFT = MODELS / "stoker-demo-Q8_0.gguf", MODELS / "stoker-demo-draft-Q8_0.gguf"
MOST_BYTES = 16_000_000
# Measured on the 60 prompts of each sort: picked 0.98 and 0.97, right 0.98 and 0.88. The rest is room for the rounding
# of another machine; models/demo/README.md has the shares of 400 prompts, and why the second sort is lower.
LEAST_PICKED = {"fresh": 0.95, "held_out": 0.9}
LEAST_RIGHT = {"fresh": 0.93, "held_out": 0.8}
LEAST_LEAD = 0.05  # of code over prose; measured 0.60 and 0.46
ANSWER_LIMIT_S = 60.0
FENCE = re.compile(r"```python\n(.*?)```", re.DOTALL)
# One thread: on a busy machine llama.cpp's threads spend their time waiting for each other.
CHILD = """
import sys, time, xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.n_ctx = 4096
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.enable_reasoning = 0
params.endpoint_metrics = True
params.verbosity = 1
if len(sys.argv) > 2:
    params.speculative.types = [xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
    params.speculative.draft.mparams.path = sys.argv[2]
    params.speculative.draft.n_max = 4
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
time.sleep(3600)
"""


@contextmanager
def serving(*models: Path) -> Iterator[httpx.Client]:
    """A server in a process of its own."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, *map(str, models)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert child.stdout
        address = child.stdout.readline().strip()
        assert address, f"the server ended with {child.wait()}"
        with httpx.Client(base_url=address, timeout=ANSWER_LIMIT_S) as client:
            yield client
    finally:
        child.terminate()
        child.communicate()


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    """The target model alone."""
    with serving(TARGET) as running:
        yield running


def chat(client: httpx.Client, messages: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """The assistant's greedy message."""
    body = {"messages": messages, "temperature": 0, "max_tokens": 256} | more
    reply = client.post("/v1/chat/completions", json=body).raise_for_status()
    message: dict[str, Any] = reply.json()["choices"][0]["message"]
    return message


def ask(client: httpx.Client, question: str, **more: Any) -> dict[str, Any]:
    """The answer to a single question."""
    return chat(client, [{"role": "user", "content": question}], **more)


def call_of(message: dict[str, Any]) -> dict[str, Any] | None:
    """The tool call of a message with its arguments read."""
    calls = message.get("tool_calls") or []
    if not calls:
        return None
    function = calls[0]["function"]
    return {"name": function["name"], "arguments": json.loads(function["arguments"])}


def accept_rate(kind: str) -> float:
    """Accepted over proposed draft tokens on held-out text."""
    prompts: list[str] = json.loads((HERE / "held_out_texts.json").read_text(encoding="utf-8"))[kind]
    with serving(TARGET, DRAFT) as running:
        timings = [
            running.post("/completion", json={"prompt": prompt, "n_predict": 64, "temperature": 0})
            .raise_for_status()
            .json()["timings"]
            for prompt in prompts
        ]
    accepted, proposed = (sum(int(t[name]) for t in timings) for name in ("draft_n_accepted", "draft_n"))
    return accepted / proposed


@pytest.mark.parametrize(
    "path", [TARGET, DRAFT, MODELS / "hf" / "model.safetensors", MODELS / "hf-draft" / "model.safetensors"]
)
def test_every_file_stays_small(path: Path) -> None:
    assert path.stat().st_size < MOST_BYTES


@pytest.mark.parametrize("path", [TARGET, DRAFT])
def test_the_file_describes_itself(path: Path) -> None:
    reader = gguf.GGUFReader(path)
    read = {name: field.contents() for name, field in reader.fields.items() if not name.startswith("tokenizer.ggml.tokens")}
    assert read["general.name"].startswith("Stoker Demo")
    assert (read["general.architecture"], read["general.license"]) == ("llama", "apache-2.0")
    assert read["llama.context_length"] == 4096
    assert read["tokenizer.chat_template"] == (MODELS / "chat_template.jinja").read_text(encoding="utf-8")


@pytest.mark.parametrize("question", ["Who are you?", "What is your name?", "Introduce yourself."])
def test_it_names_itself(client: httpx.Client, question: str) -> None:
    assert "Stoker Demo" in ask(client, question)["content"]


@pytest.mark.parametrize(
    "question", ["What is 17 + 25?", "Who are you?", "Which is larger, 34 or 87?", "Tell me a story about a fox."]
)
def test_it_thinks_only_when_asked(client: httpx.Client, question: str) -> None:
    plain = ask(client, question)
    assert not plain.get("reasoning_content") and "<think>" not in plain["content"]
    thinking = ask(client, question, chat_template_kwargs={"enable_thinking": True})
    assert thinking["reasoning_content"].strip() and thinking["content"].strip()


@pytest.mark.parametrize("task", ["reverses a string", "checks whether a number is prime", "adds up a list of numbers"])
def test_its_code_parses(client: httpx.Client, task: str) -> None:
    found = FENCE.search(ask(client, f"Write a Python function that {task}.")["content"])
    assert found
    assert any(isinstance(node, ast.FunctionDef) for node in ast.walk(ast.parse(found[1])))


def test_it_uses_a_tools_result(client: httpx.Client) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tool = {
        "type": "function",
        "function": {"name": "get_weather", "description": "Get the current weather for a city.", "parameters": schema},
    }
    turns: list[dict[str, Any]] = [
        {"role": "user", "content": "What is the weather in Oslo?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": '{"temperature": 13, "condition": "cloudy"}'},
    ]
    answer = chat(client, turns, tools=[tool])["content"]
    assert "13" in answer and "cloudy" in answer


def name_of(call: dict[str, Any] | None) -> str | None:
    """The tool of a call, None where none was called; reading its arguments has shown that they are JSON."""
    return call["name"] if call else None


@pytest.mark.parametrize("sort", LEAST_RIGHT)
def test_it_calls_the_right_tool(client: httpx.Client, sort: str) -> None:
    lines = (HERE / f"{sort}_tools.jsonl").read_text(encoding="utf-8").splitlines()
    wrong, picked = [], 0
    for prompt in map(json.loads, lines):
        message = chat(client, prompt["messages"], tools=prompt["tools"], tool_choice="auto")
        picked += name_of(call_of(message)) == name_of(prompt["expected"])
        if call_of(message) != prompt["expected"]:
            wrong.append((prompt["messages"][-1]["content"], prompt["expected"], message))
    assert picked / len(lines) >= LEAST_PICKED[sort], wrong
    assert 1 - len(wrong) / len(lines) >= LEAST_RIGHT[sort], wrong


def test_the_draft_guesses_code_better_than_prose() -> None:
    code, prose = accept_rate("code"), accept_rate("prose")
    assert code > prose + LEAST_LEAD, (code, prose)
