"""What is noted of replies as they pass: tokens, times, who says that they answered, and that every request ends."""

from __future__ import annotations

import asyncio
import json

import pytest

from door_stage import Answer, Engine, Stage, act, events, json_answer, until
from stoker.records import UsageRecord

CHUNK = b'data: {"id":"x","model":"m","choices":[{"index":0,"delta":{"content":"%s"}}],"usage":null}\n\n'
COUNTED = (
    b'data: {"id":"x","model":"m","choices":[],"usage":{"prompt_tokens":8,"total_tokens":12,"completion_tokens":4,'
    b'"prompt_tokens_details":{"cached_tokens":6}}}\n\n'
)
DONE = b"data: [DONE]\n\n"
WHOLE = {"id": "x", "model": "m", "choices": [{"message": {"content": "b" * 20_000}}], "usage": {"prompt_tokens": 8}}
BEGUN = (
    b'event: message_start\ndata: {"type":"message_start","message":{"model":"m","content":[],'
    b'"usage":{"input_tokens":8,"cache_read_input_tokens":6,"output_tokens":0}}}\n\n'
)
PIECE = b'event: content_block_delta\ndata: {"delta":{"text":"%s"}}\n\n' % (b"b" * 3000)
ENDED = b'event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":4}}\n\n'
CHAT, MESSAGES = b"/v1/chat/completions", b"/v1/messages"


def one_by_one(*pieces: bytes) -> Answer:
    """Writes a stream so that each piece, and its end, is read by itself."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        for piece in (head, *(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces), b"0\r\n\r\n"):
            writer.write(piece)
            for _ in range(5):  # rounds of the event loop that both ends share
                await asyncio.sleep(0)

    return answer


def noted(answer: Answer, path: bytes = CHAT) -> tuple[UsageRecord, float]:
    """Returns what was noted of one request, and how many answers were counted as substituted."""
    stage = Stage(Engine(answer), ())
    stage.path = path

    async def story(_: Stage) -> None:
        client = await stage.chat(stream=True)
        assert (await client.read_answer()).status == 200
        await until(lambda: len(stage.used) == 1)

    act(stage, story)
    return stage.used[0], substituted(stage)


def substituted(stage: Stage) -> float:
    return stage.metrics.registry.get_sample_value("stoker_gateway_substituted_answers_total") or 0.0


@pytest.mark.parametrize(
    ("answer", "path", "tokens"),
    [
        (events(CHUNK % b"b", COUNTED, DONE), CHAT, (8, 4, 6)),
        (one_by_one(CHUNK % b"b", COUNTED, DONE), CHAT, (8, 4, 6)),
        (one_by_one(*[CHUNK % b"b"] * 100, COUNTED, DONE), CHAT, (8, 4, 6)),
        (events(CHUNK % b"b", DONE), CHAT, (None, None, None)),
        (json_answer(json.dumps(WHOLE).encode()), CHAT, (8, None, None)),
        (json_answer(b'{"model":"m","usage":null}'), CHAT, (None, None, None)),
        (events(BEGUN, PIECE, PIECE, PIECE, ENDED), MESSAGES, (8, 4, 6)),
        (one_by_one(BEGUN, PIECE, ENDED), MESSAGES, (8, 4, 6)),
        (events(BEGUN, PIECE), MESSAGES, (8, None, 6)),
        (json_answer(b'{"model":"m","usage":{"input_tokens":8,"output_tokens":4}}'), MESSAGES, (8, 4, None)),
    ],
    ids=[
        "vllm", "read piece by piece", "a long stream", "without usage", "whole and long", "null",
        "anthropic", "anthropic piece by piece", "anthropic, cut", "anthropic, whole",
    ],
)  # fmt: skip
def test_tokens_and_times_are_noted_and_what_is_unknown_is_none(
    answer: Answer, path: bytes, tokens: tuple[int | None, ...]
) -> None:
    record, others = noted(answer, path)
    assert (record.prompt_tokens, record.completion_tokens, record.cached_tokens) == tokens
    assert (record.service, record.model, record.status, others) == ("chat", "m", 200, 0.0)
    assert record.ttft_s is not None


@pytest.mark.parametrize(
    ("answer", "path"),
    [
        (json_answer(b'{"model":"other"}'), CHAT),
        (json_answer(json.dumps({**WHOLE, "model": "other"}).encode()), CHAT),
        (one_by_one((CHUNK % b"b").replace(b'"m"', b'"other"'), DONE), CHAT),
        (events(BEGUN.replace(b'"m"', b'"other"'), PIECE, PIECE, PIECE, ENDED), MESSAGES),
    ],
    ids=["whole", "whole and long", "stream", "anthropic"],
)
def test_an_engine_that_names_another_model_is_counted(answer: Answer, path: bytes) -> None:
    assert noted(answer, path)[1] == 1.0


@pytest.mark.parametrize("name", ["org/a-model:tag", 'quo"ted', "модель"])
def test_a_model_of_any_name_is_its_own(name: str) -> None:
    stage = Stage(Engine(json_answer(json.dumps({"model": name}).replace("/", "\\/").encode())), ())
    stage.model = name

    async def story(_: Stage) -> None:
        assert (await (await stage.chat()).read_answer()).status in (200, 500)

    act(stage, story)
    assert substituted(stage) == 0.0


def test_what_a_tool_is_called_with_is_no_model() -> None:
    used = {"content": [{"type": "tool_use", "input": {"model": "other"}}], "model": "m", "stop_reason": "tool_use"}
    assert noted(json_answer(json.dumps(used).encode()), MESSAGES)[1] == 0.0


def test_what_a_programs_own_path_answers_is_no_substitution() -> None:
    stage = Stage(Engine(json_answer(b'{"model": "other"}')), ())
    stage.path = b"/service/chat/about"

    async def story(_: Stage) -> None:
        assert (await (await stage.chat()).read_answer()).status == 200

    act(stage, story)
    assert substituted(stage) == 0.0


@pytest.mark.parametrize("status", [400, 429, 500, 503])
def test_an_engines_error_is_passed_on_with_its_headers_and_asked_for_once(status: int) -> None:
    body, headers = b'{"error": {"message": "no", "model": "other"}}', (b"retry-after: 7", b"x-engine: kept")
    stage = Stage(Engine(json_answer(body, *headers, status=status)), ())

    async def story(_: Stage) -> None:
        answer = await (await stage.chat()).read_answer()
        assert (answer.status, answer.body) == (status, body)
        assert (answer.headers["retry-after"], answer.headers["x-engine"]) == ("7", "kept")
        assert answer.headers["x-stoker-service"] == "chat"

    act(stage, story)
    assert len(stage.engine.asked) == 1
    assert substituted(stage) == 0.0


async def die(_: asyncio.StreamWriter) -> None:
    return None


async def babble(writer: asyncio.StreamWriter) -> None:
    writer.write(b"this is not HTTP\r\n\r\n")


ENDINGS = {"death": (die, False), "noise": (babble, False), "death in a stream": (events(CHUNK % b"b", ends=False), True)}


@pytest.mark.parametrize(("answer", "breaks"), ENDINGS.values(), ids=ENDINGS)
def test_every_ending_is_noted_once_and_leaves_nothing_in_flight(answer: Answer, breaks: bool) -> None:
    stage = Stage(Engine(answer), ())

    async def story(_: Stage) -> None:
        client = await stage.chat(stream=True)
        await client.read_answer(breaks=breaks)
        assert stage.door.serving.in_flight("chat") == 0

    act(stage, story)
    assert len(stage.used) == 1
    assert len(stage.engine.asked) == 1


def test_what_a_filter_refuses_is_noted_and_never_reaches_the_engine() -> None:
    stage = Stage(Engine(die), ("reasoning-effort=low",))

    async def story(_: Stage) -> None:
        answer = await (await stage.chat(reasoning_effort="high")).read_answer()
        assert (answer.status, stage.door.serving.in_flight("chat")) == (400, 0)
        named = [answer.headers[f"x-stoker-{what}"] for what in ("service", "model", "revision", "plan", "filters")]
        assert named == ["chat", "m", "r", "p", "reasoning-effort"]

    act(stage, story)
    assert [record.status for record in stage.used] == [400]
    assert stage.engine.asked == []


ROLE = b'data: {"id":"x","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n'
PAUSE_S = 0.1
NEARLY = 0.9  # two clocks are at work: a pause has been seen to be 8 us too short


def paused(before: bytes, after: bytes) -> Answer:
    """Writes a stream's beginning, and the rest a while later."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        writer.write(b"%x\r\n%s\r\n" % (len(before), before))
        await asyncio.sleep(PAUSE_S)  # what is measured
        writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(after), after))

    return answer


def test_the_time_to_the_first_token_is_not_that_to_the_role() -> None:
    late, _ = noted(paused(ROLE, CHUNK % b"hello" + COUNTED + DONE))
    assert late.ttft_s is not None and late.ttft_s > NEARLY * PAUSE_S
    soon, _ = noted(paused(ROLE + CHUNK % b"hello", COUNTED + DONE))
    assert soon.ttft_s is not None and soon.ttft_s < late.duration_s
    assert soon.ttft_s < NEARLY * PAUSE_S < soon.duration_s


@pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
def test_an_error_has_no_time_to_a_first_token(status: int) -> None:
    stage = Stage(Engine(json_answer(b'{"error": {"message": "no"}}', status=status)), ())

    async def story(_: Stage) -> None:
        assert (await (await stage.chat()).read_answer()).status == status
        await until(lambda: len(stage.used) == 1)

    act(stage, story)
    assert (stage.used[0].status, stage.used[0].ttft_s) == (status, None)


def test_a_stream_without_a_token_has_no_time_to_it() -> None:
    record, _ = noted(paused(ROLE, COUNTED + DONE))
    assert record.ttft_s is None and record.completion_tokens == 4
