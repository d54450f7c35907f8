"""The protocol over HTTP: the same answers, for the control API's key alone, and nothing that acts."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from agent import HANDSHAKE, LIMIT_S, MODERN, ask_tool
from home import Home, wait_for
from stoker.supervise.process import find_marked

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def control_key(home: Home) -> str:
    """The key that opens it."""
    return home.paths.control_key_file.read_text().strip()


def post(home: Home, body: object, key: str | None = None, **headers: str) -> httpx.Response:
    """Asks once, as bare HTTP."""
    daemon = home.daemon
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    shown = control_key(home) if key is None else key
    sent = {"authorization": f"Bearer {shown}", "content-type": "application/json", **headers}
    return httpx.post(f"{daemon.url}/mcp", content=content, headers=sent, timeout=LIMIT_S)


@pytest.mark.parametrize("mode", [HANDSHAKE, MODERN])
def test_the_official_client_is_answered_over_http_in_both_eras(demo: Home, mode: str) -> None:
    async def story() -> tuple[set[str], Any]:
        daemon, headers = demo.daemon, {"authorization": f"Bearer {control_key(demo)}"}
        async with asyncio.timeout(LIMIT_S), httpx2.AsyncClient(headers=headers) as http:
            transport = streamable_http_client(f"{daemon.url}/mcp", http_client=http)
            async with Client(transport, mode=mode) as client:
                tools = {tool.name for tool in (await client.list_tools()).tools}
                return tools, await ask_tool(client, "service_status")

    tools, status = asyncio.run(story())
    assert "diagnose_service" in tools
    assert not {"start_service", "confirm_action"} & tools
    assert status["services"][0]["state"] == "READY"


def test_the_keys_of_models_do_not_open_it(demo: Home) -> None:
    named = demo.json("keys", "add", "guest")["key"]
    assert post(demo, PING).json()["result"] == {}
    for key in (demo.daemon.key, named, "wrong"):
        assert post(demo, PING, key).status_code in (401, 403)


def test_a_web_page_of_elsewhere_and_another_name_of_this_machine_are_refused(demo: Home) -> None:
    assert post(demo, PING, origin="https://evil.example").status_code == 403
    assert post(demo, PING, host="evil.example").status_code in (403, 421)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"rubbish", 400, -32700), (b"[1]", 400, -32600), (b"[" * 5000, 400, -32700), (b"\xff", 400, -32700),
        (b'{"x": "' + b"x" * 4 * 1024**2 + b'"}', 413, -32600),
    ],
)  # fmt: skip
def test_what_is_no_request_is_refused_without_a_process(demo: Home, body: bytes, status: int, code: int) -> None:
    reply = post(demo, body)
    assert (reply.status_code, reply.json()["error"]["code"]) == (status, code)


def test_headers_that_say_something_else_than_the_body_are_refused(demo: Home) -> None:
    version = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": version}}
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"}
    assert post(demo, asked, **headers).json()["result"]["resultType"] == "complete"
    for wrong in ({"mcp-method": "ping"}, {"mcp-protocol-version": "2025-11-25"}):
        refused = post(demo, asked, **{**headers, **wrong})
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32020)


def test_a_notification_is_taken_and_other_methods_are_not(demo: Home) -> None:
    assert post(demo, {"jsonrpc": "2.0", "method": "notifications/initialized"}).status_code == 202
    reply = httpx.get(f"{demo.daemon.url}/mcp", headers={"authorization": f"Bearer {control_key(demo)}"})
    assert (reply.status_code, reply.headers["allow"]) == (405, "POST")


def test_nothing_runs_on_once_the_answer_is_there(demo: Home) -> None:
    pid = demo.daemon_pid
    assert post(demo, PING).json()["result"] == {}
    wait_for("the process that answered to be gone", lambda: not dict(find_marked(f"mcp/{pid}/")))
