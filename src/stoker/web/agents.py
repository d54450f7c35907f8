"""The Model Context Protocol over HTTP, at /mcp: each request is answered in its reply's body, and no stream stays open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from stoker.errors import StokerError
from stoker.flows.agents import Agents
from stoker.web.wire import answer_json

PATH = "/mcp"
MOST_BYTES = 4 * 1024**2
PARSE_ERROR, INVALID_REQUEST, INTERNAL_ERROR, HEADER_MISMATCH = -32700, -32600, -32603, -32020
# Since 2026-07-28 headers say again what the body says, for those between who read headers alone: both have to be the same.
VERSION, METHOD = "mcp-protocol-version", "mcp-method"
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"


def agents_route(agents: Callable[[], Agents]) -> Route:
    """Returns the route that answers agents; who they are is found out when one asks."""

    async def answer(request: Request) -> Response:
        body = await request.body()
        if len(body) > MOST_BYTES:
            return _refuse(None, INVALID_REQUEST, f"a request is at most {MOST_BYTES // 1024**2} MiB long", 413)
        try:
            message = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
            return _refuse(None, PARSE_ERROR, f"the body is no JSON: {problem}")
        if not isinstance(message, dict):
            return _refuse(None, INVALID_REQUEST, "a body is one request, as an object")
        if wrong := _find_mismatch(message, request):
            return _refuse(message.get("id"), HEADER_MISMATCH, f"the header {wrong} is missing, or says something else")
        return await _while_there(request, _answer(agents(), message))

    return Route(PATH, answer, methods=["POST"])


async def _answer(agents: Agents, message: dict[str, Any]) -> Response:
    number = message.get("id")
    if number is None or "method" not in message:
        return Response(status_code=202)  # it asks for nothing
    try:
        # Encoded again, so that it is one line.
        return Response(await agents.ask(msgspec.json.encode(message)), media_type="application/json")
    except StokerError as problem:
        return _refuse(number, INTERNAL_ERROR, str(problem), 503)


async def _while_there(request: Request, work: Coroutine[None, None, Response]) -> Response:
    """Returns what the work comes to; it ends with the client that waits for it, or with the daemon."""
    async with asyncio.TaskGroup() as tasks:
        answer, left = tasks.create_task(work), tasks.create_task(_leaves(request))
        await asyncio.wait((answer, left), return_when=asyncio.FIRST_COMPLETED)
        answer.cancel()
        left.cancel()
    return Response(status_code=499) if answer.cancelled() else answer.result()


async def _leaves(request: Request) -> None:
    await request.receive()  # its body was read, so that what comes is that it has gone


def _find_mismatch(message: dict[str, Any], request: Request) -> str | None:
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    if not isinstance(meta, dict) or VERSION_KEY not in meta:
        return None
    said = {VERSION: meta[VERSION_KEY], METHOD: message.get("method")}
    return next((name for name, value in said.items() if request.headers.get(name) != value), None)


def _refuse(number: object, code: int, message: str, status: int = 400) -> Response:
    error = {"code": code, "message": message}
    return answer_json({"jsonrpc": "2.0", "id": number, "error": error}, status)
