"""What passes between client and engine: every byte, every error, and the news that one of the two has gone."""

from __future__ import annotations

import contextlib
import json
import socket
import zlib
from itertools import count

import pytest
from benchmarks.gateway.peers import ask_engine
from benchmarks.gateway.probes import ENDS, LEAVES, STATUSES, EngineItself, leave, read_events, show_status
from benchmarks.gateway.probes_input import AMBIGUOUS, ask_raw
from benchmarks.gateway.processes import read_rss_bytes, wait_for
from benchmarks.gateway.raw_client import SEQUENCE, Counter, Reply, ask, connect, read, render_chat, render_head, send
from benchmarks.gateway.stoker_peer import Stoker

MIB = 2**20
LIMIT_S = 60.0
LEFT_LIMIT_MS = 2000.0  # measured: 1 ms; this machine may be busy
SLOW_READERS, SLOW_CHUNKS, PAD_BYTES = 8, 16384, 4096
TAGS = map(str, count())
WITH_USAGE = {"stream_options": {"include_usage": True}}
BREAKS = {name: case for name, case in ENDS.items() if "hang" not in case[0]}  # silence has a limit, and a test of its own


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_reply_is_the_engines_byte_for_byte(mocked: Stoker, stream: bool) -> None:
    own, through = (ask(asked, stream=stream, fields=WITH_USAGE) for asked in (EngineItself(mocked), mocked))
    assert (own.status, own.end) == (through.status, through.end) == (200, "complete")
    assert SEQUENCE.sub(b"#", own.body) == SEQUENCE.sub(b"#", through.body)


@pytest.mark.parametrize("pad_bytes", [0, 1, 1500, 70_000])
def test_no_byte_of_a_long_stream_is_lost(mocked: Stoker, pad_bytes: int) -> None:
    reply = ask(mocked, f"mock ttft=1 itl=0 tokens=200 pad={pad_bytes} sum=1", limit_s=LIMIT_S)
    content, _, told = reply.body.partition(b'data: {"choices":[],"crc32":"')
    assert (reply.chunks, reply.is_done) == (200, True)
    assert int(told[:8], 16) == zlib.crc32(content)


def test_a_chunk_arrives_before_the_next_one_is_made(mocked: Stoker) -> None:
    with connect(mocked.port) as client:
        send(client, mocked, render_chat("mock ttft=1 itl=600000 tokens=2"))
        assert read(client, Reply(), LIMIT_S, chunks=1).chunks == 1


@pytest.mark.parametrize("case", LEAVES.values(), ids=LEAVES)
def test_an_engine_stops_at_once_when_its_client_has_left(mocked: Stoker, case: tuple[str, bool]) -> None:
    left = leave(mocked, f"left{next(TAGS)}", *case)
    assert left.end == "aborted"
    assert left.after_ms is not None
    assert left.after_ms < LEFT_LIMIT_MS


@pytest.mark.parametrize("case", BREAKS.values(), ids=BREAKS)
def test_a_reply_that_broke_off_never_looks_whole_and_is_asked_for_once(mocked: Stoker, case: tuple[str, bool]) -> None:
    words, stream = case
    tag = f"broke{next(TAGS)}"
    reply = ask(mocked, f"mock ttft=1 itl=1 {words} tag={tag}", stream=stream)
    assert not reply.is_done
    assert len(read_events(mocked, tag)) == 1
    if "die=5" in words:
        assert (reply.status, reply.chunks, reply.end) == (200, 5, "closed before its end")
        assert "broke the connection before its reply was whole" in (reply.error_event or "")
    else:
        assert (reply.status, json.loads(reply.body)["error"]["code"]) == (502, "engine_died")


@pytest.mark.parametrize("status", STATUSES)
def test_an_engines_error_is_passed_on_as_it_is_and_not_asked_for_again(mocked: Stoker, status: int) -> None:
    assert show_status(mocked, status) == "kept; asked 1x"


def test_a_body_of_10_mb_arrives_whole_and_once(mocked: Stoker) -> None:
    tag = f"large{next(TAGS)}"
    body = render_chat(f"mock ttft=1 itl=1 tokens=1 tag={tag} " + "y" * 10_000_000)
    assert ask(mocked, raw=body, limit_s=LIMIT_S).status == 200
    assert [event["body_bytes"] for event in read_events(mocked, tag)] == [len(body)]


def test_a_head_over_64_kib_is_refused_and_one_below_is_not(mocked: Stoker) -> None:
    assert ask(mocked, more=(f"x-large: {'h' * 60_000}",)).status == 200
    refused = ask(mocked, more=(f"x-large: {'h' * 66_000}",))
    assert (refused.status, json.loads(refused.body)["error"]["code"]) == (431, "head_too_large")


@pytest.mark.parametrize("tail", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_a_request_with_two_meanings_does_not_reach_the_engine(mocked: Stoker, tail: str) -> None:
    before = ask_engine(mocked, "/mock/stats")["requests"]
    assert ask_raw(mocked, tail).status == 400
    assert ask_engine(mocked, "/mock/stats")["requests"] == before


def test_readers_that_stall_hold_the_engine_back_at_under_1_mib_each(mocked: Stoker) -> None:
    before_bytes, tag = read_rss_bytes(mocked.pids()), f"slow{next(TAGS)}"
    body = render_chat(f"mock ttft=1 itl=0 tokens={SLOW_CHUNKS} pad={PAD_BYTES} tag={tag}")
    with contextlib.ExitStack() as open_sockets:
        readers = [open_sockets.enter_context(connect(mocked.port, receive_bytes=65536)) for _ in range(SLOW_READERS)]
        for reader in readers:
            send(reader, mocked, body)
        wait_for("the engine to be held back", lambda: is_held_back(mocked, tag), LIMIT_S)
        grown_bytes = read_rss_bytes(mocked.pids()) - before_bytes
        assert grown_bytes / SLOW_READERS < MIB
        assert all(event["end"] is None for event in read_events(mocked, tag))
        whole = read(readers[0], Counter(), LIMIT_S)
        assert (whole.chunks, whole.end) == (SLOW_CHUNKS, "complete")
    wait_for("the others to be given up", lambda: all(event["end"] for event in read_events(mocked, tag)), LIMIT_S)
    assert sorted(event["end"] for event in read_events(mocked, tag)) == ["aborted"] * (SLOW_READERS - 1) + ["finished"]


def is_held_back(mocked: Stoker, tag: str) -> bool:
    """Tells whether the engine has begun all replies, and writes no more of them."""
    first = [event["written_bytes"] for event in read_events(mocked, tag)]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent, contextlib.suppress(TimeoutError):
        silent.settimeout(0.25)  # a quarter of a second in which nothing may move is what is looked for
        silent.recv(1)
    return len(first) == SLOW_READERS and first == [event["written_bytes"] for event in read_events(mocked, tag)]


def test_a_request_after_a_refused_one_on_the_same_connection_is_answered(mocked: Stoker) -> None:
    with connect(mocked.port) as client:
        for words, status in (("die=0", 502), ("status=503", 503), ("itl=1", 200)):
            send(client, mocked, render_chat(f"mock ttft=1 tokens=3 {words}"))
            assert read(client, Reply()).status == status


def test_pipelined_chats_are_answered_in_their_order(mocked: Stoker) -> None:
    bodies = [render_chat(f"mock ttft=1 itl=1 tokens={tokens}") for tokens in (3, 1, 2)]
    with connect(mocked.port) as client:
        client.sendall(b"".join(render_head(mocked, len(body)) + body for body in bodies))
        raw = b""
        while raw.count(b"data: [DONE]") < 3:
            raw += client.recv(65536)
    assert [len(SEQUENCE.findall(part)) for part in raw.split(b"data: [DONE]")[:3]] == [3, 1, 2]
