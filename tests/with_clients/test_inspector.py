"""The protocol's own inspector, by its command line from the npm registry, is answered over both transports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from home import Home

PYTHON = os.environ.get("STOKER_CLIENTS", "")
LIMIT_S = 60
PROGRAM = "npm/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
LOG = "INFO 11-20 vLLM API server version 0.26.0\nerror: unrecognized arguments: --enable-magic\n"
pytestmark = pytest.mark.elsewhere(bool(PYTHON), "the clients of `make test-clients`")


def inspect(home: Home, server: tuple[str, ...], method: str, *words: str) -> Any:
    """Returns what the inspector prints of one question; fails where it calls the answer wrong."""
    environment = Path(PYTHON).parents[1]
    argv = (str(environment / "bin" / "node"), str(environment / PROGRAM), "--cli", *server, "--method", method, *words)
    variables = {**home.environment, "HOME": str(home.folder)}  # it keeps a catalog of servers there
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, env=variables, cwd=home.folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.fixture(params=["stdio", "http"])
def server(request: pytest.FixtureRequest, demo: Home) -> tuple[str, ...]:
    """The words by which the inspector finds the server."""
    if request.param == "stdio":
        return sys.executable, "-m", "stoker", "mcp"
    key = demo.paths.control_key_file.read_text().strip()
    return f"{demo.daemon.url}/mcp", "--transport", "http", "--header", f"Authorization: Bearer {key}"


def test_the_inspector_finds_no_schema_that_a_client_could_stumble_over(demo: Home, server: tuple[str, ...]) -> None:
    found = inspect(demo, server, "tools/list", "--strict")
    names = {tool["name"] for tool in found["tools"]}
    assert {"diagnose_service", "plan_service", "service_status"} <= names
    assert "confirm_action" not in names


def test_the_inspector_is_answered_by_a_tool(demo: Home, server: tuple[str, ...]) -> None:
    told = inspect(demo, server, "tools/call", "--tool-name", "diagnose_log", "--tool-arg", f"text={LOG}")
    [first, *_] = told["structuredContent"]["findings"]
    assert first["rule"] == "flag-not-known"
    assert first["confidence"] == "certain"


def test_the_inspector_reads_a_rule_and_a_prompt(demo: Home, server: tuple[str, ...]) -> None:
    listed = {one["uri"] for one in inspect(demo, server, "resources/list")["resources"]}
    assert "stoker://rules" in listed
    [text] = inspect(demo, server, "resources/read", "--uri", "stoker://rules")["contents"]
    assert "flag-not-known" in text["text"]
    asked = inspect(demo, server, "prompts/get", "--prompt-name", "server-wont-start", "--prompt-args", "service=demo")
    assert "demo" in asked["messages"][0]["content"]["text"]
