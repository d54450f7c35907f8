"""Request bodies in a coding: the model's name is in them, so they are refused, with what to do instead."""

from __future__ import annotations

import gzip

import pytest

from door_stage import Stage, json_answer, run

BODY = b'{"model": "m", "messages": []}'


CODINGS = [b"gzip", b"deflate", b"br", b"zstd", b"GZIP", b"x-gzip", b"identity, gzip", b"gzip, identity"]


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("path", [b"/v1/chat/completions", b"/v1/messages", b"/tokenize"])
def test_a_coded_body_is_refused_by_name_and_reaches_no_engine(coding: bytes, path: bytes) -> None:
    async def story(stage: Stage) -> None:
        client = await stage.request(b"POST", path, b"content-encoding: " + coding, body=gzip.compress(BODY))
        answer = await client.read_answer()
        assert (answer.status, answer.code, answer.headers["accept-encoding"]) == (415, "compressed_body", "identity")
        message = answer.json()["error"]["message"]
        assert f"`Content-Encoding: {coding.decode()}`" in message
        assert "send it uncompressed" in message

    assert run(json_answer(b"{}"), story).asked == []


def test_a_second_header_does_not_hide_it() -> None:
    async def story(stage: Stage) -> None:
        codings = (b"content-encoding: identity", b"content-encoding: gzip")
        client = await stage.request(b"POST", b"/v1/completions", *codings, body=gzip.compress(BODY))
        assert (await client.read_answer()).status == 415

    assert run(json_answer(b"{}"), story).asked == []


@pytest.mark.parametrize("coding", [b"identity", b"Identity", b""])
def test_a_body_that_is_said_to_be_plain_passes(coding: bytes) -> None:
    async def story(stage: Stage) -> None:
        client = await stage.request(b"POST", b"/v1/completions", b"content-encoding: " + coding, body=BODY)
        assert (await client.read_answer()).status == 200

    assert run(json_answer(b"{}"), story).asked[0][1] == BODY
