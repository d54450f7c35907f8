"""Filters between the real door, the real relay and a scripted engine's bytes."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json

from door_stage import Engine, Stage, events, json_answer, run

THINKING = b'data: {"choices":[{"index":0,"delta":{"reasoning":"hm"},"finish_reason":null}]}\n\n'
TOLD = b'data: {"choices":[],"usage":{"completion_tokens":9}}\n\n'
COUNTED = TOLD.replace(b"9}", b'9,"completion_tokens_details":{"reasoning_tokens":5}}')
DONE = b"data: [DONE]\n\n"
BOTH = ("reasoning-field=reasoning_content", "reasoning-tokens")


def test_a_stream_is_changed_event_by_event_and_its_thinking_counted() -> None:
    async def story(stage: Stage) -> None:
        answer = await (await stage.chat(stream=True)).read_answer()
        assert answer.headers["x-stoker-filters"] == "reasoning-field, reasoning-tokens"
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert answer.body == THINKING.replace(b"reasoning", b"reasoning_content") + COUNTED + DONE

    engine = run(events(THINKING[:20], THINKING[20:] + TOLD[:9], TOLD[9:] + DONE), story, BOTH)
    question = json.loads(engine.asked[1][1])
    assert (question["content"], question["prompt"], question["model"]) == ("hm", "hm", "m")
    assert b"authorization: Bearer engine" in engine.asked[1][0]


def test_a_whole_reply_gets_its_new_length_and_the_connection_is_kept() -> None:
    message = {"index": 0, "finish_reason": "stop", "message": {"content": "a", "reasoning": "hm"}}

    async def story(stage: Stage) -> None:
        answer = await (await stage.chat()).read_answer()
        assert answer.json()["choices"][0]["message"] == {"content": "a", "reasoning_content": "hm"}
        assert answer.json()["usage"]["completion_tokens_details"] == {"reasoning_tokens": 5}
        assert int(answer.headers["content-length"]) == len(answer.body)
        assert "connection" not in answer.headers

    run(json_answer(json.dumps({"choices": [message], "usage": {"completion_tokens": 9}}).encode()), story, BOTH)


def test_what_needs_no_change_comes_byte_for_byte() -> None:
    body = b'{ "choices": [ {"message" : {"content": "\\u00e4"}} ] , "usage":{"completion_tokens":  1.0e0}}\n'

    async def story(stage: Stage) -> None:
        answer = await (await stage.chat()).read_answer()
        assert answer.body == body

    engine = run(json_answer(body), story, BOTH)
    assert len(engine.asked) == 1
    assert json.loads(engine.asked[0][1]) == {"model": "m", "messages": []}


def test_errors_and_compressed_replies_are_passed_on_untouched() -> None:
    error = b'{"error": {"reasoning": "no"}, "usage": {}}'
    packed = gzip.compress(b'{"choices": [{"message": {"reasoning": "x"}}], "usage": {}}')
    for answer, status, body in (
        (json_answer(error, b"retry-after: 7", status=429), 429, error),
        (json_answer(packed, b"content-encoding: gzip"), 200, packed),
        (json_answer(error, kind=b"text/plain"), 200, error),
        (json_answer(b""), 200, b""),
    ):

        async def story(stage: Stage, status: int = status, body: bytes = body) -> None:
            answer = await (await stage.chat(b"accept-encoding: gzip")).read_answer()
            assert (answer.status, answer.body) == (status, body)
            assert answer.headers["x-stoker-filters"] == "reasoning-field, reasoning-tokens"
            assert answer.headers.get("retry-after") == ("7" if status == 429 else None)

        assert b"accept-encoding" not in run(answer, story, BOTH).asked[0][0]


def test_a_client_may_ask_for_compression_where_no_filter_reads_replies() -> None:
    async def story(stage: Stage) -> None:
        answer = await (await stage.chat(b"accept-encoding: gzip", max_tokens=9)).read_answer()
        assert answer.headers["x-stoker-filters"] == "cap-tokens"

    engine = run(json_answer(b"{}"), story, ("cap-tokens=5",))
    assert b"accept-encoding: gzip" in engine.asked[0][0]
    assert json.loads(engine.asked[0][1])["max_tokens"] == 5


def test_a_request_that_a_filter_refuses_never_reaches_the_engine() -> None:
    async def story(stage: Stage) -> None:
        answer = await (await stage.chat(reasoning_effort="low")).read_answer()
        assert (answer.status, answer.code) == (400, "reasoning_effort_unknown")
        assert answer.json()["error"]["param"] == "reasoning_effort"
        assert answer.headers["x-stoker-filters"] == "reasoning-effort"

    assert run(json_answer(b"{}"), story, ("reasoning-effort=high,none",)).asked == []


def test_an_unknown_count_stays_unknown() -> None:
    body = b'{"choices":[{"message":{"reasoning_content":"x"},"finish_reason":"stop"}],"usage":{"completion_tokens":3}}'

    async def cut(writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    for counts in (
        json_answer(b"no", status=404),
        json_answer(b"[]"),
        json_answer(b"{}"),
        cut,
        json_answer(b'{"count":"x"}'),
    ):

        async def story(stage: Stage) -> None:
            assert (await (await stage.chat()).read_answer()).body == body

        run(Engine(json_answer(body), counts), story, BOTH)


def test_an_engine_that_dies_in_the_middle_of_a_stream_is_still_told() -> None:
    async def story(stage: Stage) -> None:
        answer = await (await stage.chat(stream=True)).read_answer(breaks=True)
        assert answer.body.startswith(THINKING.replace(b"reasoning", b"reasoning_content") + b'data: {"choices"')
        assert json.loads(answer.body.rstrip().rpartition(b"data: ")[2])["error"]["code"] == "engine_died"
        assert DONE not in answer.body

    run(events(THINKING, b'data: {"choices":[{"delta":{"reason', ends=False), story, BOTH)


def test_an_engine_that_dies_while_its_tokens_are_counted_is_still_told() -> None:
    async def story(stage: Stage) -> None:
        answer = await (await stage.chat(stream=True)).read_answer(breaks=True)
        assert COUNTED in answer.body
        assert json.loads(answer.body.rstrip().rpartition(b"data: ")[2])["error"]["code"] == "engine_died"

    run(events(THINKING, TOLD, ends=False), story, BOTH)


def test_an_engine_that_dies_before_a_whole_reply_is_whole_is_an_error_with_a_status() -> None:
    async def half(writer: asyncio.StreamWriter) -> None:
        writer.write(b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"choices"')

    async def story(stage: Stage) -> None:
        answer = await (await stage.chat()).read_answer()
        assert (answer.status, answer.code) == (502, "engine_died")

    run(half, story, BOTH)


def test_a_client_that_leaves_ends_the_request_at_the_engine() -> None:
    left = asyncio.Event()

    class Waiting(Engine):
        async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await events(THINKING, ends=False)(writer)
            with contextlib.suppress(ConnectionError):
                await reader.readuntil(b"\r\n\r\n")
                await reader.read()
            writer.close()
            left.set()

    async def story(stage: Stage) -> None:
        client = await stage.chat(stream=True)
        await client.reader.readuntil(b"reasoning_content")
        client.writer.transport.abort()
        await left.wait()

    run(Waiting(events()), story, BOTH)


def test_a_slow_reader_holds_the_engine_back() -> None:
    piece = THINKING.replace(b"hm", b"hm" * 500) * 80
    sent = 0

    async def much(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await events(ends=False)(writer)
        for _ in range(300):  # 24 MB
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
            sent += 1
        writer.write(b"0\r\n\r\n")

    async def story(stage: Stage) -> None:
        client = await stage.chat(stream=True)
        await client.reader.readuntil(b"\r\n\r\n")
        client.stop_reading()
        before, idle_turns = 0, 0
        while idle_turns < 300:  # of the event loop that all of them share
            await asyncio.sleep(0)
            before, idle_turns = sent, idle_turns + 1 if sent == before else 0
        assert sent < 290
        client.read_on()
        pieces = [b""]
        while not pieces[-1].endswith(b"\r\n0\r\n\r\n"):
            pieces.append(await client.reader.read(1 << 20))
        assert b"".join(pieces).count(b'"delta":{"reasoning_content":"') > 23_000  # a chunk's frame may cut one in two

    run(much, story, ("reasoning-field=reasoning_content",))


def test_nothing_of_a_stream_passes_an_event_whose_count_is_awaited() -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def slow_count(writer: asyncio.StreamWriter) -> None:
        asked.set()
        await go_on.wait()
        await json_answer(b'{"count": 5, "tokens": [1, 2, 3, 4, 5]}')(writer)

    async def story(stage: Stage) -> None:
        client = await stage.chat(stream=True)
        await asked.wait()
        got = await client.reader.readuntil(b"\n\n\r\n")
        assert got.endswith(THINKING.replace(b"reasoning", b"reasoning_content") + b"\r\n")
        go_on.set()
        assert await client.read_chunks() == COUNTED + DONE

    run(Engine(events(THINKING, TOLD, DONE), slow_count), story, BOTH)
