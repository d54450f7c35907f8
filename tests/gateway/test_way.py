"""What of a request's head reaches the engine."""

from __future__ import annotations

import pytest

from door_stage import Engine, Stage, json_answer, run
from gateway_client import Answer


def ask(*headers: bytes) -> tuple[list[bytes], Answer]:
    """Returns the lines of the head that the engine got, and the answer."""
    answers: list[Answer] = []

    async def story(stage: Stage) -> None:
        answers.append(await (await stage.chat(*headers)).read_answer())

    engine = run(Engine(json_answer(b'{"model": "m"}')), story)
    return engine.asked[0][0].lower().split(b"\r\n"), answers[0]


@pytest.mark.parametrize(
    "headers",
    [
        (b"connection: x-mine", b"x-mine: 1"),
        (b"x-mine: 1", b"Connection: keep-alive, X-Mine"),
        (b"connection: keep-alive", b"x-mine: 1", b"connection: x-mine"),
    ],
)
def test_headers_that_connection_names_go_no_further(headers: tuple[bytes, ...]) -> None:
    lines, _ = ask(*headers, b"x-yours: 2")
    assert b"x-yours: 2" in lines
    assert not [line for line in lines if line.startswith(b"x-mine")]
    assert lines.count(b"connection: keep-alive") == 1


def test_the_engine_gets_the_id_that_the_client_sees() -> None:
    lines, answer = ask()
    assert b"x-request-id: " + answer.headers["x-request-id"].encode() in lines
    lines, answer = ask(b"x-request-id: mine-1")
    assert answer.headers["x-request-id"] == "mine-1"
    assert lines.count(b"x-request-id: mine-1") == 1


def test_ids_differ() -> None:
    ids = {ask()[1].headers["x-request-id"] for _ in range(3)}
    assert len(ids) == 3


def test_what_is_for_the_gateway_alone_stays_here() -> None:
    lines, _ = ask(b"cookie: a=b", b"x-api-key: key")
    assert not [line for line in lines if line.startswith((b"cookie", b"x-api-key"))]
    assert [line for line in lines if line.startswith(b"authorization")] == [b"authorization: bearer engine"]
