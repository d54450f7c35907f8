"""The soak's judge finds what it looks for: wrong answers, lost bytes, and ends that look whole and are not."""

from __future__ import annotations

import zlib

import pytest
from benchmarks.gateway.mock_words import DONE, Words, checksum_event, failure, framed
from benchmarks.gateway.raw_client import Reply
from benchmarks.gateway.soak_judge import Asked, Tally

CHUNKS = 5
ASKED = Asked("red", CHUNKS, stream=True, is_known=True, may_fail=False)
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-stoker-model: %s\r\ntransfer-encoding: chunked\r\n\r\n"


def events(model: str = "red") -> list[bytes]:
    """Returns the events of a whole stream, with their sum."""
    words = Words(model, model)
    said = [*(words.chunk(number, 1, 2, b"pad") for number in range(CHUNKS)), words.tail(None)]
    return [*said, checksum_event(zlib.crc32(b"".join(said))), DONE]


def read(parts: list[bytes], model: bytes = b"red", end: bytes = b"0\r\n\r\n") -> Reply:
    """Returns what a client reads of such a stream."""
    reply = Reply()
    reply.parser.feed_data(HEAD % model + b"".join(map(framed, parts)) + end)
    if not end:
        reply.end = "closed before its end"
    return reply


def judge(reply: Reply, asked: Asked = ASKED) -> Tally:
    """Returns a tally of this reply alone."""
    tally = Tally()
    tally.take(asked, reply)
    return tally


def test_a_whole_stream_is_no_breach() -> None:
    tally = judge(read(events()))
    assert (tally.breaches, tally.seen["stream, whole"], tally.chunks) == ([], 1, CHUNKS)


@pytest.mark.parametrize(
    "reply",
    [read(events("blue")), read(events(), b"blue"), read([*events()[:2], *events("blue")[2:]])],
    ids=["all of it", "the header", "the rest"],
)
def test_words_of_another_model_are_a_wrong_answer(reply: Reply) -> None:
    assert judge(reply).wrong_answers == 1


@pytest.mark.parametrize(
    "parts",
    [
        [part for number, part in enumerate(events()) if number != 2],
        [events()[0], *events()],
        [events()[1], events()[0], *events()[2:]],
        [part.replace(b"pad", b"bad") for part in events()],
        [*events()[:5], *events()[6:]],
    ],
    ids=["one lost", "one doubled", "two in each other's place", "one byte changed", "the tail lost"],
)
def test_lost_and_changed_bytes_are_found(parts: list[bytes]) -> None:
    assert judge(read(parts)).lost_bytes > 0


def test_a_stream_without_done_that_ends_cleanly_is_a_breach() -> None:
    assert "without [DONE]" in judge(read(events()[:-1])).breaches[0]


@pytest.mark.parametrize("may_fail", [False, True])
@pytest.mark.parametrize(
    "reply",
    [read(events()[:3], end=b""), read([*events()[:3], b'data: {"error":{"message":"died"}}\n\n'])],
    ids=["cut", "error event"],
)
def test_a_stream_may_break_off_during_a_switch_alone(reply: Reply, may_fail: bool) -> None:
    assert judge(reply, ASKED._replace(may_fail=may_fail)).breach_count == (0 if may_fail else 1)


@pytest.mark.parametrize(("status", "code", "known"), [(503, "service_stopped", True), (404, "model_not_found", False)])
def test_a_refusal_has_to_fit_the_model(status: int, code: str, known: bool) -> None:
    body = str(failure("no", "x", code)).encode()
    for is_known in (True, False):
        reply = Reply()
        reply.parser.feed_data(b"HTTP/1.1 %d X\r\ncontent-length: %d\r\n\r\n%s" % (status, len(body), body))
        assert (judge(reply, ASKED._replace(is_known=is_known)).breach_count == 0) is (is_known is known)
