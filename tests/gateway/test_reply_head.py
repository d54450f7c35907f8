"""The head of an engine's reply: what is understood, what is refused, and what of it goes on."""

from __future__ import annotations

import pytest

from stoker.gateway.framing import Body, BrokenFraming, ChunkedBody, OpenBody, SizedBody
from stoker.gateway.reply_head import HEAD_LIMIT_BYTES, ReplyHead, read_head, split_head


def read(*lines: bytes, status: bytes = b"HTTP/1.1 200 OK", method: str = "POST") -> ReplyHead:
    return read_head(b"\r\n".join([status, *lines, b"", b""]), method)


@pytest.mark.parametrize(
    ("lines", "kind", "length"),
    [
        ([b"content-length: 5"], SizedBody, 5),
        ([b"Content-Length: 5 "], SizedBody, 5),
        ([b"content-length: 0"], SizedBody, 0),
        ([b"transfer-encoding: chunked"], ChunkedBody, None),
        ([b"Transfer-Encoding: Chunked "], ChunkedBody, None),
        ([], OpenBody, None),
    ],
)
def test_a_bodys_length_is_what_the_head_says(lines: list[bytes], kind: type[Body], length: int | None) -> None:
    reply = read(*lines)
    assert isinstance(reply.body, kind)
    assert reply.length == length


@pytest.mark.parametrize(
    "lines",
    [
        [b"content-length: 5", b"content-length: 6"], [b"content-length: 5, 5"], [b"content-length: -5"],
        [b"content-length: +5"], [b"content-length: 0x5"], [b"content-length: "], [b"content-length: " + b"9" * 40],
        [b"content-length: 5", b"transfer-encoding: chunked"], [b"transfer-encoding: gzip, chunked"],
        [b"transfer-encoding: gzip"], [b"transfer-encoding: chunked", b"transfer-encoding: chunked"],
        [b"transfer-encoding : chunked"], [b"transfer-encoding: identity"], [b"x: a\r\n folded"], [b"x: a\rb"],
        [b"no colon"],
    ],
)  # fmt: skip
def test_a_length_that_can_be_read_in_two_ways_is_refused(lines: list[bytes]) -> None:
    with pytest.raises(BrokenFraming):
        read(*lines)


@pytest.mark.parametrize("status", [b"", b"SSH-2.0-x", b"HTTP/1.1 OK", b"HTTP/1.1 20 OK", b"GET / HTTP/1.1", b"\0"])
def test_what_is_no_reply_is_refused(status: bytes) -> None:
    with pytest.raises(BrokenFraming):
        read(status=status)


@pytest.mark.parametrize(
    ("status", "method"), [(b"HTTP/1.1 204 X", "POST"), (b"HTTP/1.1 304 X", "GET"), (b"HTTP/1.1 200 OK", "HEAD")]
)
@pytest.mark.parametrize("line", [b"content-length: 5", b"transfer-encoding: chunked", b"x: y"])
def test_a_reply_without_a_body_has_none_whatever_it_says(status: bytes, method: str, line: bytes) -> None:
    assert read(line, status=status, method=method).body.done


@pytest.mark.parametrize("lines", [[], [b"content-length: 0"], [b"content-length: 5"]])
def test_what_follows_a_switch_of_protocols_is_no_body(lines: list[bytes]) -> None:
    reply = read(b"connection: upgrade", b"upgrade: websocket", *lines, status=b"HTTP/1.1 101 X", method="GET")
    assert isinstance(reply.body, OpenBody)
    assert not reply.reusable


@pytest.mark.parametrize(
    ("status", "lines", "reusable"),
    [
        (b"HTTP/1.1 200 OK", [b"content-length: 5"], True),
        (b"HTTP/1.1 200 OK", [b"content-length: 5", b"connection: close"], False),
        (b"HTTP/1.1 200 OK", [b"content-length: 0"], True),
        (b"HTTP/1.1 200 OK", [b"content-length: 0", b"connection: close"], False),
        (b"HTTP/1.1 204 X", [b"connection: close"], False),
        (b"HTTP/1.1 204 X", [], True),
        (b"HTTP/1.1 200 OK", [b"transfer-encoding: chunked", b"connection: x, Close"], False),
        (b"HTTP/1.1 200 OK", [], False),
        (b"HTTP/1.0 200 OK", [b"content-length: 5"], False),
        (b"HTTP/1.0 200 OK", [b"content-length: 0"], False),
        (b"HTTP/1.0 200 OK", [b"content-length: 5", b"connection: keep-alive"], True),
    ],
)
def test_a_connection_is_used_again_only_where_both_keep_it(status: bytes, lines: list[bytes], reusable: bool) -> None:
    assert read(*lines, status=status).reusable is reusable


def test_who_answered_is_not_the_engines_to_say() -> None:
    reply = read(
        b"content-length: 0", b"X-Stoker-Model: other", b"x-request-id: other", b"access-control-allow-origin: *",
        b"Keep-Alive: timeout=5", b"Retry-After: 7", b"trailer: x-sum", b"x-odd: \xff\xfe",
    )  # fmt: skip
    assert reply.headers == [(b"retry-after", b"7"), (b"trailer", b"x-sum"), (b"x-odd", b"\xff\xfe")]


def test_events_can_be_added_to_a_plain_stream_only() -> None:
    assert read(b"content-type: Text/Event-Stream; charset=utf-8").is_stream
    assert not read(b"content-type: text/event-stream", b"content-encoding: gzip").is_stream
    assert not read(b"content-type: application/json").is_stream


def test_a_head_is_split_from_what_follows_and_has_a_limit() -> None:
    assert split_head(b"a\r\n\r") is None
    assert split_head(b"a\r\n\r\nb") == (b"a\r\n\r\n", b"b")
    with pytest.raises(BrokenFraming):
        split_head(b"a" * (HEAD_LIMIT_BYTES + 1))
