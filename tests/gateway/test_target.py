"""Targets in absolute form at the real door: the path in them decides, and who they name is checked like a `Host`."""

from __future__ import annotations

import pytest

from door_stage import Engine, Stage, json_answer, run
from gateway_client import Answer

BODY = b'{"model": "m"}'
CHAT = b"/v1/chat/completions"


def ask(target: bytes, *hosts: bytes, version: bytes = b"1.1") -> tuple[Answer, Engine]:
    answers: list[Answer] = []

    async def story(stage: Stage) -> None:
        client = await stage.connect()
        lines = [b"POST %s HTTP/%s" % (target, version), *(b"Host: " + host for host in hosts), b"authorization: Bearer key"]
        client.send(b"\r\n".join([*lines, b"content-length: %d" % len(BODY), b"", BODY]))
        answers.append(await client.read_answer())

    engine = run(json_answer(BODY), story)
    return answers[0], engine


@pytest.mark.parametrize("host", [b"127.0.0.1:8000", b"LOCALHOST", b"[::1]:8700"])
@pytest.mark.parametrize("scheme", [b"http", b"https", b"HTTP"])
def test_the_path_of_an_absolute_target_decides_and_is_what_the_engine_gets(scheme: bytes, host: bytes) -> None:
    answer, engine = ask(b"%s://%s%s?a=b" % (scheme, host, CHAT), host)
    assert (answer.status, answer.headers["x-stoker-model"]) == (200, "m")
    [(head, _)] = engine.asked
    assert head.startswith(b"POST %s?a=b HTTP/1.1\r\n" % CHAT)
    assert head.lower().count(b"\r\nhost: ") == 1


def test_a_services_own_path_is_found_in_an_absolute_target() -> None:
    answer, engine = ask(b"http://127.0.0.1/service/chat/any%20where?a=b", b"127.0.0.1")
    assert answer.status == 200
    assert engine.asked[0][0].startswith(b"POST /any%20where?a=b HTTP/1.1\r\n")


@pytest.mark.parametrize(
    "host", [b"evil.example", b"127.0.0.1.evil.example:8700", b"127.0.0.1@evil.example", b"localhost@127.0.0.1", b""]
)
@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
def test_a_target_that_names_another_host_is_refused_whatever_the_header_says(host: bytes, version: bytes) -> None:
    answer, engine = ask(b"http://%s%s" % (host, CHAT), b"127.0.0.1", version=version)
    assert (answer.status, answer.code) == (403, "foreign_host")
    assert engine.asked == []


def test_a_target_that_names_this_host_outranks_its_header() -> None:
    assert ask(b"http://127.0.0.1" + CHAT, b"evil.example")[0].status == 200


def test_a_host_is_wanted_beside_an_absolute_target_and_not_more_than_one() -> None:
    target = b"http://127.0.0.1" + CHAT
    assert ask(target)[0].status == 400
    assert ask(target, b"127.0.0.1", b"127.0.0.1")[0].status == 400


def test_before_http_1_1_the_target_alone_names_the_host() -> None:
    assert ask(b"http://evil.example" + CHAT, version=b"1.0")[0].code == "foreign_host"
    assert ask(b"http://127.0.0.1" + CHAT, version=b"1.0")[0].status == 200


@pytest.mark.parametrize("target", [b"http://127.0.0.1", b"http://127.0.0.1?a=b"])
def test_a_target_without_a_path_means_the_root(target: bytes) -> None:
    assert ask(target, b"127.0.0.1")[0].status == 405  # which is the dashboard's, and takes no POST
