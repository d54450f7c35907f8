"""An ASGI application behind the same door: a small Starlette app, asked over a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from gateway_client import LOOPS, Client, Loop, Server, get, post, run
from stoker.gateway.asgi import App, run_app
from stoker.gateway.exchange import Exchange

in_both_loops = pytest.mark.parametrize("loop", LOOPS, ids=["asyncio", "uvloop"])


class Site:
    """A small site whose streams wait for the test's word."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.ended = asyncio.Event()
        self.given = 0
        routes = [
            Route("/echo/{name}", self.echo, methods=["GET", "POST"]), Route("/stream", self.stream),
            Route("/endless", self.endless), Route("/empty", self.empty), Route("/plain", self.plain),
        ]  # fmt: skip
        self._starlette = Starlette(routes=routes)

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await self._starlette(scope, receive, send)
        finally:
            self.ended.set()

    async def echo(self, request: Request) -> Response:
        told: dict[str, Any] = {
            "method": request.method, "name": request.path_params["name"], "query": dict(request.query_params),
            "body": (await request.body()).decode(), "agent": request.headers.get("User-Agent"),
        }  # fmt: skip
        return JSONResponse(told, headers={"X-Kind": "echo"})

    async def stream(self, request: Request) -> Response:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"first "
            await self.go_on.wait()
            yield b"second"

        return StreamingResponse(pieces(), media_type="text/event-stream")

    async def endless(self, request: Request) -> Response:
        async def pieces() -> AsyncIterator[bytes]:
            while True:
                self.given += 1
                yield b"x" * 65536

        return StreamingResponse(pieces())

    async def empty(self, request: Request) -> Response:
        return Response(status_code=204)

    async def plain(self, request: Request) -> Response:
        return PlainTextResponse("grüß", 201)


def run_site(loop: Loop, story: Callable[[Server, Client, Site], Awaitable[None]], app: App | None = None) -> None:
    async def play(server: Server) -> None:
        site = Site()
        server.answers_at_once = False
        async with asyncio.TaskGroup() as tasks:
            answering = tasks.create_task(answer_all(server, app or site.app))
            await story(server, await server.connect(), site)
            answering.cancel()

    run(play, loop)


async def answer_all(server: Server, app: App) -> None:
    async with asyncio.TaskGroup() as tasks:
        while True:
            tasks.create_task(run_app(app, await server.held.get()))


@in_both_loops
def test_a_request_reaches_the_application_whole(loop: Loop) -> None:
    async def story(server: Server, client: Client, site: Site) -> None:
        client.send(post(b'{"a": 1}', b"user-agent: t", path=b"/echo/gr%C3%BC%C3%9F?q=a%20b&r="))
        answer = await client.read_answer()
        assert answer.status == 200
        assert answer.headers["x-kind"] == "echo"
        assert answer.headers["content-type"] == "application/json"
        assert answer.json() == {
            "method": "POST", "name": "grüß", "query": {"q": "a b", "r": ""}, "body": '{"a": 1}', "agent": "t",
        }  # fmt: skip

    run_site(loop, story)


@in_both_loops
def test_answers_of_all_kinds_leave_the_connection_usable(loop: Loop) -> None:
    async def story(server: Server, client: Client, site: Site) -> None:
        client.send(
            get(b"/empty"), get(b"/plain"), b"HEAD /plain HTTP/1.1\r\nhost: x\r\n\r\n", get(b"/nothing"), get(b"/plain")
        )
        empty = await client.read_answer(bodiless=True)
        assert (empty.status, "transfer-encoding" in empty.headers) == (204, False)
        plain = await client.read_answer()
        assert (plain.status, plain.body.decode()) == (201, "grüß")
        assert (await client.read_answer(bodiless=True)).headers["content-length"] == "6"
        assert (await client.read_answer()).status == 404
        assert (await client.read_answer()).status == 201

    run_site(loop, story)


@in_both_loops
def test_a_stream_arrives_piece_by_piece(loop: Loop) -> None:
    async def story(server: Server, client: Client, site: Site) -> None:
        client.send(get(b"/stream"))
        assert b"text/event-stream" in await client.reader.readuntil(b"\r\n\r\n")
        assert await client.reader.readuntil(b"first \r\n") == b"6\r\nfirst \r\n"
        site.go_on.set()
        assert await client.reader.readuntil(b"0\r\n\r\n") == b"6\r\nsecond\r\n0\r\n\r\n"
        client.send(get(b"/plain"))
        assert (await client.read_answer()).status == 201

    run_site(loop, story)


@in_both_loops
def test_a_client_that_leaves_ends_a_stream(loop: Loop) -> None:
    async def story(server: Server, client: Client, site: Site) -> None:
        client.send(get(b"/endless"))
        await client.reader.readexactly(300_000)
        client.writer.transport.abort()
        await site.ended.wait()

    run_site(loop, story)


@in_both_loops
def test_a_client_that_does_not_read_holds_the_application_back(loop: Loop) -> None:
    async def story(server: Server, client: Client, site: Site) -> None:
        client.stop_reading()
        client.send(get(b"/endless"))
        given = -1
        while given != site.given:
            given = site.given
            for _ in range(50):
                await asyncio.sleep(0)
        assert site.given < 500
        client.writer.transport.abort()
        await site.ended.wait()

    run_site(loop, story)


@in_both_loops
def test_an_application_that_only_listens_is_told_that_the_client_left(loop: Loop) -> None:
    told: list[str] = []
    begun, over = asyncio.Event(), asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        begun.set()
        told.append((await receive())["type"])
        told.append((await receive())["type"])
        over.set()

    async def story(server: Server, client: Client, site: Site) -> None:
        client.send(get())
        await begun.wait()
        client.writer.transport.abort()
        await over.wait()
        assert told == ["http.request", "http.disconnect"]

    run_site(loop, story, app)


@in_both_loops
def test_a_client_that_left_before_the_applications_turn_is_told_too(loop: Loop) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert (await receive())["type"] == "http.request"
        assert (await receive())["type"] == "http.disconnect"

    async def story(server: Server) -> None:
        server.answers_at_once = False
        client = await server.connect()
        client.send(get())
        exchange = await server.held.get()
        client.writer.transport.abort()
        while not exchange.done:
            await asyncio.sleep(0)
        await run_app(app, exchange)

    run(story, loop)


@in_both_loops
def test_an_answer_that_begins_while_the_client_does_not_read_waits(loop: Loop) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"late"})

    async def story(server: Server) -> None:
        server.answers_at_once = False
        client = await server.connect()
        client.send(get())
        exchange = await server.held.get()
        exchange.pause()  # as its connection does while the client does not read
        async with asyncio.TaskGroup() as tasks:
            answering = tasks.create_task(run_app(app, exchange))
            for _ in range(100):
                await asyncio.sleep(0)
            assert not exchange.done
            exchange.resume()
            assert (await client.read_answer()).body == b"late"
            await answering

    run(story, loop)


@in_both_loops
@pytest.mark.parametrize("messages", [[], [{"type": "http.response.start", "status": 200, "headers": []}]])
def test_an_application_that_gives_up_does_not_leave_its_client_hanging(loop: Loop, messages: list[Any]) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        for message in messages:
            await send(message)

    async def story(server: Server, client: Client, site: Site) -> None:
        client.send(get())
        assert not (await client.read_to_the_end()).endswith(b"0\r\n\r\n")

    run_site(loop, story, app)


@in_both_loops
def test_what_is_sent_after_the_client_left_goes_nowhere_and_lets_others_run(loop: Loop) -> None:
    async def story(server: Server) -> None:
        server.answers_at_once = False
        client = await server.connect()
        client.send(get())
        exchange: Exchange = await server.held.get()
        client.writer.transport.abort()
        while not exchange.done:
            await asyncio.sleep(0)
        others = asyncio.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            while not others.is_set():
                await send({"type": "http.response.body", "body": b"x", "more_body": True})

        asyncio.get_running_loop().call_soon(others.set)
        await run_app(app, exchange)
        assert exchange.status is None

    run(story, loop)
