"""Clients that wait until their service has started, at the real door."""

from __future__ import annotations

import json

import pytest

from door_stage import Stage, act, json_answer, until
from gateway_client import Client
from stoker.gateway.directory import Entry
from stoker.records import QueueLimits, State
from waiting_stage import DONE, TOKEN, Bringing

NAMED = b"event: error\ndata: {"
OFTEN = {"wait_comment_s": 0.1}
COMMENT = b": chat is LOADING: it loads; a start takes about 42 s\n\n"
CHAT, MESSAGES, RESPONSES = b"/v1/chat/completions", b"/v1/messages", b"/v1/responses"


def often(stage: Bringing) -> Bringing:
    stage.gateway = OFTEN
    return stage


async def ask_until_waiting(stage: Bringing, *headers: bytes, **body: object) -> Client:
    client = await stage.chat(*headers, **body)
    await until(lambda: stage.waits == 1)
    return client


async def read_comment(client: Client) -> bytes:
    """Returns the head, once a comment has come after it."""
    head = await client.reader.readuntil(b"\r\n\r\n")
    assert await client.reader.readuntil(b"\n\n\r\n") == b"%x\r\n%s\r\n" % (len(COMMENT), COMMENT)
    return head


async def read_rest(client: Client, breaks: bool = False) -> bytes:
    """Returns what came after the comments."""
    body = await (client.read_broken_chunks() if breaks else client.read_chunks())
    while body.startswith(b":"):
        body = body.partition(b"\n\n")[2]
    return body


def test_a_whole_reply_comes_when_the_service_does() -> None:
    stage = often(Bringing(json_answer(b'{"model": "m"}')))

    async def story(_: Stage) -> None:
        client = await ask_until_waiting(stage)
        stage.come()
        answer = await client.read_answer()
        assert (answer.status, answer.body) == (200, b'{"model": "m"}')
        assert answer.headers["x-stoker-plan"] == "p"

    act(stage, story)
    assert (stage.asks, len(stage.engine.asked)) == (1, 1)


def test_a_stream_is_told_of_the_start_and_then_comes_as_ever() -> None:
    stage = often(Bringing())

    async def story(_: Stage) -> None:
        client = await ask_until_waiting(stage, b"accept-encoding: gzip", stream=True)
        head = await read_comment(client)
        assert b"\r\nx-stoker-service: chat\r\nx-stoker-model: m\r\n" in head
        stage.come()
        assert await read_rest(client) == TOKEN + DONE
        client.send(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert (await client.read_answer()).status == 200

    act(stage, story)
    assert b"accept-encoding" not in stage.engine.asked[0][0]
    assert [record.status for record in stage.used] == [200]


def test_filters_work_on_what_was_waited_for() -> None:
    stage = often(Bringing(filters=("reasoning-field=reasoning_content", "cap-tokens=5")))

    async def story(_: Stage) -> None:
        client = await ask_until_waiting(stage, stream=True, max_tokens=100)
        await read_comment(client)
        stage.come()
        assert await read_rest(client) == TOKEN + DONE

    act(stage, story)
    assert json.loads(stage.engine.asked[0][1])["max_tokens"] == 5


@pytest.mark.parametrize(("path", "begins"), [(CHAT, b"data: {"), (MESSAGES, NAMED), (RESPONSES, NAMED)])
def test_a_start_that_fails_after_a_comment_is_an_error_event(path: bytes, begins: bytes) -> None:
    stage = often(Bringing())
    stage.path = path

    async def story(_: Stage) -> None:
        client = await ask_until_waiting(stage, stream=True)
        await read_comment(client)
        stage.fail()
        event = await read_rest(client, breaks=True)
        assert event.startswith(begins)
        assert event.endswith(b"}\n\n")
        error = json.loads(event.partition(b"data: ")[2])["error"]
        assert "the engine ended (exit code 7)" in error["message"]
        assert (error["code"], error["src"]) == ("start_failed", "stoker")

    act(stage, story)
    assert stage.engine.asked == []
    assert [record.status for record in stage.used] == [503]


VLLM_OLD = b'{"object": "error", "message": "too long", "type": "BadRequestError", "code": 400}'
FOREIGN = [(b'{"error": {\n"message": "too long"}}', 400), (VLLM_OLD, 400), (b"too long", 500)]


@pytest.mark.parametrize(("body", "status"), FOREIGN, ids=["pretty", "without an error", "words"])
@pytest.mark.parametrize("path", [CHAT, MESSAGES], ids=["openai", "anthropic"])
def test_an_engines_own_error_after_a_comment_is_an_event_too(body: bytes, status: int, path: bytes) -> None:
    stage = often(Bringing(json_answer(body, status=status)))
    stage.path = path

    async def story(_: Stage) -> None:
        client = await ask_until_waiting(stage, stream=True)
        await read_comment(client)
        stage.come()
        event = (await read_rest(client, breaks=True)).decode()
        data = "\n".join(line.removeprefix("data: ") for line in event.splitlines() if line.startswith("data: "))
        assert "too long" in json.loads(data)["error"]["message"]
        assert event.startswith("event: error\n") == (path == MESSAGES)

    act(stage, story)
    assert [record.status for record in stage.used] == [status]


def test_an_engine_that_dies_before_its_reply_is_told_of_after_a_comment() -> None:
    async def dies(_: object) -> None:
        return None

    stage = often(Bringing(dies))

    async def story(_: Stage) -> None:
        client = await ask_until_waiting(stage, stream=True)
        await read_comment(client)
        stage.come()
        assert json.loads((await read_rest(client, breaks=True)).removeprefix(b"data: "))["error"]["code"] == "engine_died"

    act(stage, story)


def test_a_whole_reply_to_one_who_was_promised_a_stream_is_one_event() -> None:
    stage = often(Bringing(json_answer(b'{"model": "m"}')))

    async def story(_: Stage) -> None:
        client = await ask_until_waiting(stage, stream=True)
        await read_comment(client)
        stage.come()
        assert await read_rest(client) == b'data: {"model": "m"}\n\n'

    act(stage, story)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_who_does_not_want_to_wait_is_told_when_to_come_back(stream: bool) -> None:
    stage = often(Bringing())

    async def story(_: Stage) -> None:
        answer = await (await stage.chat(b"x-stoker-wait: 0", stream=stream)).read_answer()
        assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "service_loading", "5")

    act(stage, story)
    assert stage.asks == 1


ODD = [b"nan", b"inf", b"-1", b"abc", b"1e3", b"1_0", b"0x10", b"+1", b"-0", b"30 s", b".", b"", b"\xb2", b"9" * 10]


@pytest.mark.parametrize("said", ODD)
@pytest.mark.parametrize("state", [State.LOADING, State.READY])
def test_a_wait_that_is_no_number_of_seconds_is_refused_whether_there_is_one_or_not(said: bytes, state: State) -> None:
    stage = Bringing(json_answer(b'{"model": "m"}'))
    stage.state = state

    async def story(_: Stage) -> None:
        answer = await (await stage.chat(b"x-stoker-wait: " + said)).read_answer()
        assert (answer.status, answer.code, answer.headers["x-stoker-service"]) == (400, "invalid_wait", "chat")
        assert "number such as 30 or 0.5" in answer.json()["error"]["message"]

    act(stage, story)
    assert (stage.asks, stage.engine.asked) == (0, [])


@pytest.mark.parametrize("said", [b"0.", b".05", b"0", b"00", b"0.000000001"])
def test_any_plain_number_is_one(said: bytes) -> None:
    stage = Bringing()

    async def story(_: Stage) -> None:
        assert (await (await stage.chat(b"x-stoker-wait: " + said)).read_answer()).code == "service_loading"

    act(stage, story)


class Planned(Bringing):
    """A service that comes up by a plan that is known."""

    def entries(self) -> list[Entry]:
        return [entry._replace(revision="r", plan_id="p") for entry in super().entries()]


WHO = {"x-stoker-service": "chat", "x-stoker-model": "m", "x-stoker-revision": "r", "x-stoker-plan": "p"}


@pytest.mark.parametrize("state", [State.LOADING, State.BACKOFF])
def test_a_service_that_is_not_ready_is_named_with_its_revision_and_plan(state: State) -> None:
    stage = Planned()
    stage.state = state

    async def story(_: Stage) -> None:
        answer = await (await stage.chat(b"x-stoker-wait: 0")).read_answer()
        assert answer.status == 503
        assert WHO.items() <= answer.headers.items()

    act(stage, story)


def test_a_stream_that_waits_and_one_too_many_are_told_of_whom() -> None:
    stage = Planned()
    stage.gateway, stage.limits = OFTEN, QueueLimits(None, 1, 600.0)

    async def story(_: Stage) -> None:
        client = await ask_until_waiting(stage, stream=True)
        head = await read_comment(client)
        assert all(f"\r\n{name}: {value}\r\n".encode() in head for name, value in WHO.items())
        refused = await (await stage.chat()).read_answer()
        assert refused.status == 429
        assert WHO.items() <= refused.headers.items()
        stage.come()
        assert await read_rest(client) == TOKEN + DONE

    act(stage, story)


def test_what_is_not_known_before_a_plan_is_made_is_not_said() -> None:
    stage = Bringing()

    async def story(_: Stage) -> None:
        answer = await (await stage.chat(b"x-stoker-wait: 0")).read_answer()
        assert {name for name in answer.headers if name.startswith("x-stoker-")} == {"x-stoker-service", "x-stoker-model"}

    act(stage, story)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_wait_is_over_when_its_header_says_so(stream: bool) -> None:
    stage = Bringing()

    async def story(_: Stage) -> None:
        answer = await (await stage.chat(b"x-stoker-wait: 0.1", stream=stream)).read_answer()
        assert (answer.status, answer.code, stage.waits) == (503, "service_loading", 0)

    act(stage, story)


def test_a_client_that_leaves_while_it_waits_ends_the_waiting_alone() -> None:
    stage = often(Bringing())

    async def story(_: Stage) -> None:
        client = await ask_until_waiting(stage, stream=True)
        await read_comment(client)
        client.writer.transport.abort()
        await until(lambda: stage.waits == 0 and len(stage.used) == 1)
        assert not stage.brought.done()
        stage.come()

    act(stage, story)
    assert stage.engine.asked == []


def test_a_key_that_is_revoked_while_it_waits_is_told_so_once() -> None:
    stage = Bringing()

    async def story(_: Stage) -> None:
        client = await ask_until_waiting(stage)
        stage.meter.cut("owner")
        stage.fail()
        assert (await client.read_answer()).code == "revoked_api_key"
        client.send(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert (await client.read_answer()).body == b'{"status":"ok"}'

    act(stage, story)
    assert [record.status for record in stage.used] == [401]


@pytest.mark.parametrize("most", [0, 1, 2])
def test_one_more_than_may_wait_for_a_start_is_told_why_and_those_who_wait_are_answered(most: int) -> None:
    stage = Bringing(json_answer(b'{"model": "m"}'))
    stage.limits = QueueLimits(None, most, 600.0)
    room = max(1, most)  # somebody has to start it

    async def story(_: Stage) -> None:
        waiting = [await stage.chat() for _ in range(room)]
        await until(lambda: stage.waits == room)
        refused = await (await stage.chat()).read_answer()
        assert (refused.status, refused.code, refused.headers["retry-after"]) == (429, "queue_full", "5")
        assert f"{room} requests wait for it to start" in refused.json()["error"]["message"]
        stage.come()
        assert [(await client.read_answer()).status for client in waiting] == [200] * room

    act(stage, story)
    assert (stage.asks, len(stage.engine.asked)) == (room, room)


@pytest.mark.parametrize("leaves", [True, False], ids=["leaves", "has waited enough"])
def test_who_waits_for_a_start_no_more_gives_his_place_to_another(leaves: bool) -> None:
    stage = Bringing(json_answer(b'{"model": "m"}'))
    stage.limits = QueueLimits(None, 1, 600.0)

    async def story(_: Stage) -> None:
        first = await ask_until_waiting(stage, *([] if leaves else [b"x-stoker-wait: 0.2"]))
        if leaves:
            first.writer.transport.abort()
        else:
            assert (await first.read_answer()).status == 503
        await until(lambda: stage.waits == 0)
        second = await ask_until_waiting(stage)
        stage.come()
        assert (await second.read_answer()).status == 200

    act(stage, story)


def test_a_service_that_is_gone_again_when_the_wait_is_over_is_not_asked() -> None:
    stage = Bringing()

    async def story(_: Stage) -> None:
        client = await ask_until_waiting(stage)
        stage.brought.set_result(None)
        stage.state = State.BACKOFF
        answer = await client.read_answer()
        assert (answer.status, answer.code) == (503, "service_backoff")

    act(stage, story)
