"""What engines send, passed on as it is, and what becomes of replies that are not HTTP or that break off."""

from __future__ import annotations

import asyncio
import gzip

import pytest

from door_stage import Answer, Stage, events, json_answer, raw, run
from stoker.gateway.framing import CLOSING_LIMIT_BYTES

OK, EVENTS = b"HTTP/1.1 200 OK\r\n", b"content-type: text/event-stream\r\n"
CHUNKED = b"transfer-encoding: chunked\r\n"
DONE = b"data: [DONE]\n\n"


def test_compressed_bytes_are_not_touched() -> None:
    body = gzip.compress(b'{"a": 1}')

    async def story(stage: Stage) -> None:
        answer = await (await stage.chat(b"accept-encoding: gzip, br")).read_answer()
        assert (answer.body, answer.headers["content-encoding"]) == (body, "gzip")

    (head, _) = run(json_answer(body, b"content-encoding: gzip"), story).asked[0]
    assert b"accept-encoding: gzip, br\r\n" in head


def test_a_compressed_request_reaches_a_services_own_path_as_it_is() -> None:
    body = gzip.compress(b"{}")

    async def story(stage: Stage) -> None:
        client = await stage.request(b"POST", b"/service/chat/x", b"content-encoding: gzip", body=body)
        assert (await client.read_answer()).status == 200

    assert run(json_answer(b"{}"), story).asked[0][1] == body


def test_trailers_and_chunk_sizes_pass_as_they_came() -> None:
    written = b"1;x=y\r\na\r\n0003\r\nbcd\r\n0\r\nx-sum: 7\r\nx-more: 8\r\n\r\n"

    async def story(stage: Stage) -> None:
        client = await stage.chat()
        head = await client.reader.readuntil(b"\r\n\r\n")
        assert b"trailer: x-sum\r\n" in head
        assert await client.reader.readexactly(len(written)) == written
        client.send(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert (await client.read_answer()).status == 200

    run(raw(OK + b"Trailer: x-sum\r\n" + CHUNKED + b"\r\n", *(bytes([one]) for one in written)), story)


def test_what_an_engine_says_before_its_reply_is_not_passed_on() -> None:
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n"

    async def story(stage: Stage) -> None:
        answer = await (await stage.chat()).read_answer()
        assert (answer.status, answer.body) == (200, b"{}")

    run(raw(early, OK + b"content-length: 2\r\n\r\n{}"), story)


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_a_body_that_ends_with_the_connection_is_whole(version: bytes) -> None:
    async def story(stage: Stage) -> None:
        answer = await (await stage.chat()).read_answer()
        assert (answer.body, answer.headers["transfer-encoding"]) == (b"one two", "chunked")

    run(raw(b"HTTP/%s 200 OK\r\n\r\none " % version, b"two"), story)


@pytest.mark.parametrize(
    "reply",
    [
        json_answer(b"12345"), raw(OK + CHUNKED + b"\r\n2\r\n12\r\n3\r\n345\r\n0\r\nx: y\r\n\r\n"), raw(OK + b"\r\n12345"),
    ],
    ids=["sized", "chunked", "open"],
)  # fmt: skip
def test_a_client_of_http_1_0_gets_a_body_without_chunks(reply: Answer) -> None:
    async def story(stage: Stage) -> None:
        client = await stage.connect()
        client.send(b"GET /service/chat/x HTTP/1.0\r\nhost: 127.0.0.1\r\nauthorization: Bearer key\r\n\r\n")
        head, _, body = (await client.read_to_the_end()).partition(b"\r\n\r\n")
        assert b"transfer-encoding" not in head
        assert body == b"12345"

    run(reply, story)


@pytest.mark.parametrize(
    ("status", "more"),
    [(204, b""), (304, b"content-length: 5\r\n"), (304, b"etag: x\r\n"), (200, b"content-length: 5\r\n"), (200, CHUNKED)],
)
def test_a_reply_without_a_body_leaves_the_connection_usable(status: int, more: bytes) -> None:
    async def story(stage: Stage) -> None:
        client = await stage.request(b"HEAD" if status == 200 else b"GET", b"/service/chat/x")
        assert (await client.read_answer(bodiless=True)).status == status
        client.send(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert (await client.read_answer()).body == b'{"status":"ok"}'

    run(raw(b"HTTP/1.1 %d X\r\n%s\r\n" % (status, more)), story)


@pytest.mark.parametrize(
    "reply",
    [
        b"SSH-2.0-x\r\n\r\n", OK + b"content-length: 1\r\ncontent-length: 2\r\n\r\na", OK + b"content-length: x\r\n\r\n",
        OK + CHUNKED + b"content-length: 2\r\n\r\n", OK + b"x: " + b"y" * 70_000,
    ],
    ids=["words", "two lengths", "no number", "both", "endless head"],
)  # fmt: skip
def test_a_reply_that_is_not_http_is_told_as_the_engines_fault(reply: bytes) -> None:
    async def story(stage: Stage) -> None:
        answer = await (await stage.chat()).read_answer()
        assert (answer.status, answer.code) == (502, "engine_malformed")

    run(raw(reply), story)


@pytest.mark.parametrize(
    "rest",
    [
        b"", b"5", b"5\r\n", b"5\r\nda", b"5\r\ndata:", b"5\r\ndata:\r", b"5\r\ndata:\r\n", b"0\r\n",
        b"0\r\nx: y\r\n", b"%x\r\nabc" % CLOSING_LIMIT_BYTES,
    ],
)  # fmt: skip
def test_a_stream_that_breaks_at_any_byte_gets_an_error_event_and_no_end(rest: bytes) -> None:
    async def story(stage: Stage) -> None:
        body = (await (await stage.chat(stream=True)).read_answer(breaks=True)).body
        assert body.startswith(b"data: 1\n\n")
        assert b'"src":"stoker"' in body
        assert DONE not in body

    run(raw(OK + EVENTS + CHUNKED + b"\r\n9\r\ndata: 1\n\n\r\n", rest), story)


@pytest.mark.parametrize("rest", [b"5\r\ndata:xx", b"zz\r\n", b"0\r\n" + b"x: %s\r\n" % (b"y" * 500) * 40])
def test_a_stream_that_stops_being_http_gets_an_error_event_and_no_end(rest: bytes) -> None:
    async def story(stage: Stage) -> None:
        assert b"engine_malformed" in (await (await stage.chat(stream=True)).read_answer(breaks=True)).body

    run(raw(OK + EVENTS + CHUNKED + b"\r\n9\r\ndata: 1\n\n\r\n", rest), story)


@pytest.mark.parametrize(
    "reply",
    [
        OK + EVENTS + b"content-length: 90\r\n\r\ndata: 1\n\n",
        OK + EVENTS + b"content-encoding: gzip\r\n" + CHUNKED + b"\r\n9\r\ndata: 1\n\n\r\n",
        OK + EVENTS + CHUNKED + b"\r\n9\r\ndata: 1\n\n\r\n%x\r\nabc" % (CLOSING_LIMIT_BYTES * 2),
        OK + b"content-length: 9\r\n\r\ndata",
        OK + CHUNKED + b"\r\n9\r\ndata",
    ],
    ids=["sized stream", "compressed stream", "huge chunk", "sized", "chunked"],
)
def test_what_cannot_carry_an_error_breaks_off(reply: bytes) -> None:
    async def story(stage: Stage) -> None:
        client = await stage.chat(stream=True)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError, ValueError)):
            await client.read_answer()

    run(raw(reply), story)


def test_the_request_id_is_said_once_and_is_the_clients() -> None:
    async def story(stage: Stage) -> None:
        client = await stage.chat(b"x-request-id: mine")
        head = await client.reader.readuntil(b"\r\n\r\n")
        assert head.count(b"x-request-id: ") == head.count(b"x-request-id: mine\r\n") == 1
        assert head.count(b"x-stoker-model: ") == head.count(b"x-stoker-model: m\r\n") == 1

    run(json_answer(b"{}", b"x-request-id: theirs", b"x-stoker-model: theirs"), story)


def test_a_model_with_an_odd_name_is_asked_and_named() -> None:
    name = "Größe/м-1 (x)"

    async def story(stage: Stage) -> None:
        answer = await (await stage.chat(model=name)).read_answer()
        assert answer.headers["x-stoker-model"] == name
        client = await stage.request(b"GET", b"/v1/models/Gr%C3%B6%C3%9Fe/%D0%BC-1%20(x)")
        assert (await client.read_answer()).json()["id"] == name

    run(json_answer(b"{}"), story, model=name)


def test_an_engine_that_waits_for_a_whole_body_gets_it_after_asking_first() -> None:
    async def story(stage: Stage) -> None:
        client = await stage.connect()
        body = b'{"model": "m"}'
        client.send(
            b"POST /v1/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: key\r\nexpect: 100-continue\r\n",
            b"content-length: %d\r\n\r\n" % len(body),
        )
        assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send(body)
        assert (await client.read_answer()).status == 200

    (head, body) = run(json_answer(b"{}"), story).asked[0]
    assert b"expect" not in head
    assert body == b'{"model": "m"}'


def test_a_filtered_stream_that_breaks_gets_an_error_event_and_no_end() -> None:
    async def story(stage: Stage) -> None:
        body = (await (await stage.chat(stream=True)).read_answer(breaks=True)).body
        assert b'"src":"stoker"' in body

    run(events(b'data: {"choices": []}\n\n', ends=False), story, ("reasoning-field=reasoning",))
