"""One client's connection on a real loopback socket, in both event loops: what is answered, refused and dropped."""

from __future__ import annotations

import asyncio
import itertools
import socket

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway_client import BODY_LIMIT_BYTES, LOOPS, Loop, Server, chunked, echo, get, post, run
from stoker.gateway.exchange import Exchange
from stoker.gateway.request_reader import HEAD_LIMIT_BYTES

SHORT_S = 0.2
in_both_loops = pytest.mark.parametrize("loop", LOOPS, ids=["asyncio", "uvloop"])


@in_both_loops
def test_a_connection_is_kept_for_the_next_request(loop: Loop) -> None:
    async def story(server: Server) -> None:
        client = await server.connect()
        for number in range(3):
            client.send(get(b"/%d?q=%d" % (number, number)))
            assert (await client.read_answer()).body == b"GET /%d q=%d " % (number, number)
        assert len(server.connections) == 1

    run(story, loop)


@in_both_loops
def test_a_fault_of_ours_is_answered_and_keeps_no_connection_waiting(loop: Loop, caplog: pytest.LogCaptureFixture) -> None:
    def handle(exchange: Exchange) -> None:
        if exchange.request.path == "/begun":
            exchange.start(200, [], None)
        if exchange.request.path != "/well":
            raise ZeroDivisionError
        echo(exchange)

    async def story(server: Server) -> None:
        server.handle = handle  # type: ignore[method-assign]
        client = await server.connect()
        client.send(get(b"/"), get(b"/well"))
        assert (await client.read_answer()).code == "internal_error"
        assert (await client.read_answer()).status == 200
        client.send(get(b"/begun"))
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await client.read_answer()

    run(story, loop)
    assert [one.getMessage() for one in caplog.records] == ["path=/ failed", "path=/begun failed"]


@in_both_loops
def test_a_request_in_many_small_pieces_is_one_request(loop: Loop) -> None:
    async def story(server: Server) -> None:
        client = await server.connect()
        client.writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in post(b"hello", b"x-a: b"):
            client.send(bytes((byte,)))
            await client.writer.drain()
        assert (await client.read_answer()).body == b"POST /p  hello"

    assert run(story, loop).handled == 1


@in_both_loops
def test_requests_in_one_write_are_answered_in_order(loop: Loop) -> None:
    async def story(server: Server) -> None:
        client = await server.connect()
        client.send(*(post(b"x" * number, path=b"/%d" % number) for number in range(50)))
        for number in range(50):
            assert (await client.read_answer()).body == b"POST /%d  " % number + b"x" * number

    run(story, loop)


@in_both_loops
def test_the_second_request_waits_until_the_first_is_answered(loop: Loop) -> None:
    async def story(server: Server) -> None:
        server.answers_at_once = False
        client = await server.connect()
        client.send(get(b"/1"), get(b"/2"))
        first = await server.held.get()
        assert server.held.empty()
        first.start(200, [], None)
        first.write(b"one")
        assert server.held.empty()
        first.end()
        echo(await server.held.get())
        assert [(await client.read_answer()).body for _ in range(2)] == [b"one", b"GET /2  "]

    run(story, loop)


@in_both_loops
def test_a_large_body_does_not_count_as_head_and_its_late_answer_arrives(loop: Loop) -> None:
    async def story(server: Server) -> None:
        server.answers_at_once = False
        client = await server.connect()
        for _ in range(3):
            client.send(post(b"x" * 200_000))  # comes in one piece
            exchange = await server.held.get()
            exchange.reply(200, [], b"%d" % len(exchange.request.body))
            answer = await client.read_answer()
            assert (answer.status, answer.body) == (200, b"200000")
            assert "connection" not in answer.headers

    run(story, loop)


@in_both_loops
@pytest.mark.parametrize(
    "head",
    [
        b"GET /%s HTTP/1.1\r\n\r\n" % (b"a" * HEAD_LIMIT_BYTES), get(b"/", b"x: " + b"a" * HEAD_LIMIT_BYTES),
        get(b"/", *(b"x-%d: %s" % (number, b"a" * 1000) for number in range(70))),
        b"GET / HTTP/1.1\r\nx: " + b"a" * (4 * HEAD_LIMIT_BYTES + 300_000), b"GET /" + b"a" * 400_000,
    ],
    ids=["target", "header", "headers", "endless header", "endless target"],
)  # fmt: skip
def test_a_head_over_64_kib_is_refused(loop: Loop, head: bytes) -> None:
    async def story(server: Server) -> None:
        client = await server.connect()
        client.send(head)
        answer = await client.read_answer()
        assert (answer.status, answer.code, answer.headers["connection"]) == (431, "head_too_large", "close")
        assert b"64 KiB" in answer.body

    assert run(story, loop).handled == 0


@in_both_loops
def test_a_head_just_under_64_kib_is_answered(loop: Loop) -> None:
    async def story(server: Server) -> None:
        client = await server.connect()
        for _ in range(2):
            client.send(get(b"/", b"x: " + b"a" * (HEAD_LIMIT_BYTES - 100)))
            assert (await client.read_answer()).status == 200

    run(story, loop)


@in_both_loops
@pytest.mark.parametrize("tail", [b"0\r\nx: ", b"1;x="], ids=["trailer", "chunk extension"])
def test_what_never_ends_after_the_head_is_refused_too(loop: Loop, tail: bytes) -> None:
    async def story(server: Server) -> None:
        client = await server.connect()
        client.send(b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n", tail, b"a" * 1_500_000)
        assert (await client.read_answer()).status == 431

    assert run(story, loop).handled == 0


@in_both_loops
@pytest.mark.parametrize("by_chunks", [False, True], ids=["length", "chunks"])
def test_a_body_over_the_limit_is_refused_readably_to_one_who_writes_it_all_first(loop: Loop, by_chunks: bool) -> None:
    async def story(server: Server) -> None:
        client = await server.connect()
        size = 16 * BODY_LIMIT_BYTES
        client.send(chunked(*(b"x" * 65536 for _ in range(size // 65536))) if by_chunks else post(b"x" * size))
        await client.writer.drain()
        answer = await client.read_answer()
        assert (answer.status, answer.code, answer.headers["connection"]) == (413, "body_too_large", "close")
        assert b"gateway.body_limit_bytes" in answer.body

    assert run(story, loop).handled == 0


@in_both_loops
def test_a_body_of_exactly_the_limit_is_taken(loop: Loop) -> None:
    async def story(server: Server) -> None:
        client = await server.connect()
        half = b"x" * (BODY_LIMIT_BYTES // 2)
        client.send(post(half + half), chunked(half, half))
        for _ in range(2):
            assert len((await client.read_answer()).body) > BODY_LIMIT_BYTES

    run(story, loop)


@in_both_loops
def test_a_client_that_asks_first_is_told_to_go_on(loop: Loop) -> None:
    async def story(server: Server) -> None:
        client = await server.connect()
        client.send(b"POST /e HTTP/1.1\r\nhost: x\r\nexpect: 100-Continue\r\ncontent-length: 2\r\n\r\n")
        assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send(b"hi")
        assert (await client.read_answer()).body == b"POST /e  hi"

    run(story, loop)


@in_both_loops
def test_a_client_that_asks_first_about_too_much_is_refused_before_it_sends(loop: Loop) -> None:
    async def story(server: Server) -> None:
        client = await server.connect()
        client.send(b"POST /e HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 99999999\r\n\r\n")
        assert (await client.read_answer()).status == 413

    run(story, loop)


@in_both_loops
def test_go_on_is_never_said_in_the_middle_of_another_answer(loop: Loop) -> None:
    async def story(server: Server) -> None:
        server.answers_at_once = False
        client = await server.connect()
        client.send(get(b"/1"), b"POST /2 HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n")
        first = await server.held.get()
        first.start(200, [], None)
        first.write(b"one")
        client.send(b"hi")
        first.end()
        echo(await server.held.get())
        assert [(await client.read_answer()).body for _ in range(2)] == [b"one", b"POST /2  hi"]

    run(story, loop)


@in_both_loops
def test_http_1_0_is_answered_whole_and_closed(loop: Loop) -> None:
    async def story(server: Server) -> None:
        client = await server.connect()
        client.send(get(b"/old", version=b"1.0"))
        assert (await client.read_to_the_end()).endswith(b"connection: close\r\n\r\nGET /old  ")
        server.answers_at_once = False
        streaming = await server.connect()
        streaming.send(get(version=b"1.0"))
        exchange = await server.held.get()
        exchange.start(200, [], None)
        exchange.write(b"to the end")
        exchange.end()
        raw = await streaming.read_to_the_end()
        assert raw.endswith(b"\r\n\r\nto the end")
        assert b"transfer-encoding" not in raw

    run(story, loop)


@in_both_loops
def test_head_gets_the_length_and_no_body(loop: Loop) -> None:
    async def story(server: Server) -> None:
        client = await server.connect()
        client.send(b"HEAD /h HTTP/1.1\r\nhost: x\r\n\r\n", get(b"/next"))
        assert (await client.read_answer(bodiless=True)).headers["content-length"] == "9"
        assert (await client.read_answer()).body == b"GET /next  "

    run(story, loop)


@in_both_loops
@pytest.mark.parametrize("status", [204, 304])
def test_a_status_without_a_body_leaves_the_connection_usable(loop: Loop, status: int) -> None:
    async def story(server: Server) -> None:
        server.answers_at_once = False
        client = await server.connect()
        client.send(get(b"/1"), get(b"/2"))
        first = await server.held.get()
        first.start(status, [], None)
        first.write(b"never sent")
        first.end()
        echo(await server.held.get())
        answer = await client.read_answer(bodiless=True)
        assert (answer.status, "transfer-encoding" in answer.headers) == (status, False)
        assert (await client.read_answer()).body == b"GET /2  "

    run(story, loop)


@in_both_loops
@pytest.mark.parametrize("offer", [b"h2c", b"websocket", b"TLS/1.0"])
def test_an_offer_to_upgrade_is_passed_over_and_the_request_answered(loop: Loop, offer: bytes) -> None:
    async def story(server: Server) -> None:
        server.answers_at_once = False
        client = await server.connect()
        client.send(post(b"hi", b"connection: Upgrade, HTTP2-Settings", b"upgrade: " + offer))
        exchange = await server.held.get()
        exchange.start(200, [], None)
        exchange.write(b"late ")
        exchange.write(b"answer")
        exchange.end()
        assert (await client.read_answer()).body == b"late answer"
        assert await client.is_closed()

    assert run(story, loop).handled == 1


@in_both_loops
def test_an_offer_to_upgrade_gets_one_answer_and_no_refusal(loop: Loop) -> None:
    async def story(server: Server) -> None:
        client = await server.connect()
        client.send(get(b"/u", b"connection: Upgrade", b"upgrade: h2c"))
        assert (await client.read_answer()).body == b"GET /u  "
        assert await client.is_closed()

    run(story, loop)


@in_both_loops
def test_what_follows_a_last_request_is_not_read(loop: Loop) -> None:
    async def story(server: Server) -> None:
        server.answers_at_once = False
        client = await server.connect()
        client.send(get(b"/1"), get(b"/2", b"connection: close"), get(b"/3"), b"garbage")
        echo(await server.held.get())
        echo(await server.held.get())
        assert [(await client.read_answer()).body for _ in range(2)] == [b"GET /1  ", b"GET /2  "]
        assert await client.is_closed()

    assert run(story, loop).handled == 2


@in_both_loops
def test_garbage_after_a_good_request_is_refused_after_its_answer(loop: Loop) -> None:
    async def story(server: Server) -> None:
        server.answers_at_once = False
        client = await server.connect()
        client.send(get(b"/1"), get(b"/2"), b"\x00\x01garbage\r\n\r\n")
        for _ in range(2):
            echo(await server.held.get())
        answers = [await client.read_answer() for _ in range(3)]
        assert [answer.status for answer in answers] == [200, 200, 400]

    assert run(story, loop).handled == 2


SMUGGLING = {
    "both lengths": b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "both, other way": b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
    "two equal lengths": b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 5\r\n\r\nhello",
    "length list": b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5, 5\r\n\r\nhello",
    "signed length": b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: +5\r\n\r\nhello",
    "negative length": b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: -5\r\n\r\nhello",
    "hex length": b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0x5\r\n\r\nhello",
    "endless length": b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999999999999999\r\n\r\nhello",
    "bare LF": b"GET / HTTP/1.1\nhost: x\n\n",
    "bare LF in a head": b"GET / HTTP/1.1\r\nhost: x\nx: y\r\n\r\n",
    "bare CR in a head": b"GET / HTTP/1.1\r\nhost: x\rx: y\r\n\r\n",
    "bare LF in a chunk": b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n",
    "obs-fold": b"GET / HTTP/1.1\r\nhost: x\r\nx: a\r\n b\r\n\r\n",
    "folded encoding": b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "space before colon": b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length : 5\r\n\r\nhello",
    "space before the first header": b"GET / HTTP/1.1\r\n host: x\r\n\r\n",
    "unknown encoding": b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    "identity": b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: identity\r\n\r\nhello",
    "chunked not last": b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "identity before chunked": b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: identity, chunked\r\n\r\n0\r\n\r\n",
    "gzip before chunked": b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "two encodings": b"POST / HTTP/1.1\r\nhost: x\r\n" + b"transfer-encoding: chunked\r\n" * 2 + b"\r\n0\r\n\r\n",
    "encoding and offer": b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: a\r\ntransfer-encoding: b\r\n\r\n",
    "tunnel": b"CONNECT x:1 HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "vertical tab": b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    "NUL in a value": b"GET / HTTP/1.1\r\nhost: x\r\nx: a\x00b\r\n\r\n",
    "signed chunk": b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n+1\r\nx\r\n0\r\n\r\n",
    "hex chunk": b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0x1\r\nx\r\n0\r\n\r\n",
    "long chunk": b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\nx\r\n0\r\n\r\n",
    "tab in the target": b"GET /a\tb HTTP/1.1\r\nhost: x\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x99" * 40,
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "an answer": b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    "words": b"hello world\r\n\r\n",
}


@in_both_loops
@pytest.mark.parametrize("raw", SMUGGLING.values(), ids=SMUGGLING)
def test_a_request_that_could_be_read_in_two_ways_is_refused(loop: Loop, raw: bytes) -> None:
    async def story(server: Server) -> None:
        client = await server.connect()
        client.send(raw, get(b"/smuggled"))
        answer = await client.read_answer()
        assert (answer.status, answer.code, answer.headers["connection"]) == (400, "malformed_request", "close")

    assert run(story, loop).handled == 0


@in_both_loops
def test_a_trailer_is_not_taken_for_a_header(loop: Loop) -> None:
    async def story(server: Server) -> None:
        server.answers_at_once = False
        client = await server.connect()
        client.send(chunked(b"hi")[:-2], b"authorization: Bearer stolen\r\n\r\n")
        exchange = await server.held.get()
        assert exchange.request.header(b"authorization") is None
        assert exchange.request.body == b"hi"

    run(story, loop)


@in_both_loops
@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nhost: x\r\n"], ids=["nothing", "target", "header"])
def test_a_slow_head_is_dropped_at_its_limit(loop: Loop, sent: bytes) -> None:
    async def story(server: Server) -> None:
        client = await server.connect()
        client.send(sent)
        assert await client.is_closed()

    assert run(story, loop, head_s=SHORT_S).handled == 0


@in_both_loops
def test_a_slow_second_head_is_dropped_at_its_limit_too(loop: Loop) -> None:
    async def story(server: Server) -> None:
        client = await server.connect()
        client.send(get(b"/1"))
        await client.read_answer()
        client.send(b"GET / HT")
        assert await client.is_closed()

    assert run(story, loop, head_s=SHORT_S).handled == 1


@in_both_loops
def test_a_slow_body_is_dropped_at_its_limit(loop: Loop) -> None:
    async def story(server: Server) -> None:
        client = await server.connect()
        client.send(post(b"hello")[:-1])
        assert await client.is_closed()

    assert run(story, loop, body_s=SHORT_S).handled == 0


@in_both_loops
def test_a_slow_second_request_does_not_cut_the_answer_of_the_first(loop: Loop) -> None:
    async def story(server: Server) -> None:
        server.answers_at_once = False
        client = await server.connect()
        client.send(get(b"/1"), b"GET /2 HT")
        first = await server.held.get()
        await asyncio.get_running_loop().run_in_executor(None, wait_until_over, SHORT_S * 2)
        first.reply(200, [], b"one")
        assert (await client.read_answer()).body == b"one"
        assert (await client.read_answer()).status == 408

    assert run(story, loop, head_s=SHORT_S).handled == 1


def wait_until_over(limit_s: float) -> None:
    """Waits for a time limit to pass, which is what is tested."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.settimeout(limit_s)
        with pytest.raises(TimeoutError):
            silent.recv(1)


@in_both_loops
def test_an_answer_that_takes_longer_than_the_limits_is_not_cut(loop: Loop) -> None:
    async def story(server: Server) -> None:
        server.answers_at_once = False
        client = await server.connect()
        client.send(post(b"x" * 200_000))
        exchange = await server.held.get()
        await asyncio.get_running_loop().run_in_executor(None, wait_until_over, SHORT_S * 2)
        exchange.reply(200, [], b"late")
        assert (await client.read_answer()).body == b"late"

    run(story, loop, head_s=SHORT_S, body_s=SHORT_S)


@in_both_loops
def test_whoever_writes_learns_that_the_client_has_left(loop: Loop) -> None:
    async def story(server: Server) -> None:
        server.answers_at_once = False
        client = await server.connect()
        client.send(get())
        exchange = await server.held.get()
        gone = asyncio.Event()
        exchange.on_gone = gone.set
        client.writer.transport.abort()
        await gone.wait()
        assert exchange.done
        exchange.write(b"into the void")
        exchange.end()
        assert not server.connections

    run(story, loop)


@in_both_loops
def test_whoever_writes_is_told_to_wait_for_a_slow_reader_who_is_answered_no_more_until_it_reads(loop: Loop) -> None:
    async def story(server: Server) -> None:
        server.answers_at_once = False
        client = await server.connect()
        client.stop_reading()
        client.send(get(b"/1"), get(b"/2"))
        first = await server.held.get()
        first.start(200, [], None)
        written = 0
        while not first.paused:
            first.write(b"x" * 65536)
            written += 65536
            assert written < 256 * 1024**2
            await asyncio.sleep(0)
        first.end()
        neighbour = await server.connect()
        neighbour.send(get(b"/3"))
        echo(await server.held.get())
        assert (await neighbour.read_answer()).body == b"GET /3  "
        assert server.held.empty()
        client.read_on()
        assert len((await client.read_answer()).body) == written
        second = await server.held.get()
        assert not second.paused
        echo(second)
        assert (await client.read_answer()).body == b"GET /2  "

    run(story, loop)


@in_both_loops
def test_an_answer_that_is_broken_off_is_seen_to_be_broken(loop: Loop) -> None:
    async def story(server: Server) -> None:
        server.answers_at_once = False
        client = await server.connect()
        client.send(get())
        exchange = await server.held.get()
        exchange.start(200, [], None)
        exchange.write(b"half")
        await client.reader.readuntil(b"half\r\n")
        exchange.abort()
        assert await client.is_closed()

    run(story, loop)


@in_both_loops
def test_a_closing_server_closes_idle_connections_and_finishes_the_others(loop: Loop) -> None:
    async def story(server: Server) -> None:
        server.answers_at_once = False
        idle, busy = await server.connect(), await server.connect()
        busy.send(get())
        exchange = await server.held.get()
        for connection in list(server.connections):
            connection.close_when_idle()
        assert await idle.is_closed()
        exchange.reply(200, [], b"done")
        assert (await busy.read_answer()).body == b"done"

    run(story, loop)


TOKENS = [
    b"GET / HTTP/1.1\r\n",
    b"POST /x HTTP/1.1\r\n",
    b"GET / HTTP/1.0\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"CONNECT a:1 HTTP/1.1\r\n",
    b"host: x\r\n",
    b"content-length: 3\r\n",
    b"content-length: 0\r\n",
    b"transfer-encoding: chunked\r\n",
    b"connection: close\r\n",
    b"connection: upgrade\r\nupgrade: h2c\r\n",
    b"expect: 100-continue\r\n",
    b"\r\n",
    b"\n",
    b"\r",
    b"abc",
    b"3\r\nabc\r\n",
    b"0\r\n\r\n",
    b"x" * 5000,
    b"\x00",
    b"\xff",
    b" ",
    b":",
    b"HEAD / HTTP/1.1\r\nhost: x\r\n\r\n",
    b"GET /ok HTTP/1.1\r\nhost: x\r\n\r\n",
]
pieces = st.lists(st.sampled_from(TOKENS) | st.binary(max_size=30), max_size=14)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(pieces, st.lists(st.integers(0, 400), max_size=4), st.booleans(), st.booleans())
def test_no_bytes_however_split_break_or_hang_a_connection(
    parts: list[bytes], cuts: list[int], at_once: bool, use_uvloop: bool
) -> None:
    raw = b"".join(parts)
    borders = [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]

    async def story(server: Server) -> None:
        server.answers_at_once = at_once
        client = await server.connect()
        for begin, end in itertools.pairwise(borders):
            client.send(raw[begin:end])
            await client.writer.drain()
            await asyncio.sleep(0)
        client.writer.write_eof()
        async with asyncio.TaskGroup() as tasks:
            answering = tasks.create_task(answer_all(server))
            await client.read_to_the_end()
            answering.cancel()
        healthy = await server.connect()
        server.answers_at_once = True
        healthy.send(get(b"/still-there"))
        assert (await healthy.read_answer()).body == b"GET /still-there  "

    run(story, LOOPS[use_uvloop])


async def answer_all(server: Server) -> None:
    while True:
        echo(await server.held.get())


@in_both_loops
@pytest.mark.parametrize(
    "framing", [b"content-length: 5\r\n\r\nhello", b"transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"]
)
@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "byte by byte"])
def test_the_body_of_a_request_that_offers_to_upgrade_is_read(loop: Loop, framing: bytes, at_once: bool) -> None:
    async def story(server: Server) -> None:
        client = await server.connect()
        client.writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = b"PUT /j HTTP/1.1\r\nhost: x\r\nconnection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\n"
        for piece in [head + framing] if at_once else [bytes((byte,)) for byte in head + framing]:
            client.send(piece)
            await client.writer.drain()
        assert (await client.read_answer()).body == b"PUT /j  hello"
        assert await client.is_closed()

    assert run(story, loop).handled == 1


@in_both_loops
def test_an_offer_to_upgrade_with_too_large_a_body_is_refused(loop: Loop) -> None:
    async def story(server: Server) -> None:
        client = await server.connect()
        client.send(
            b"POST / HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: h2c\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        client.send(b"fffff\r\n" + b"x" * (BODY_LIMIT_BYTES + 1))
        assert (await client.read_answer()).status == 413

    assert run(story, loop).handled == 0


@in_both_loops
def test_the_space_after_a_value_is_no_part_of_it(loop: Loop) -> None:
    async def story(server: Server) -> None:
        server.answers_at_once = False
        client = await server.connect()
        client.send(get(b"/", b"authorization: Bearer k \t"))
        exchange = await server.held.get()
        assert exchange.request.header(b"authorization") == b"Bearer k"
        echo(exchange)

    run(story, loop)


@in_both_loops
@pytest.mark.parametrize("line", [b"GET /", b"GET / HTTP/0.9", b"GET / HTTP/2.0"])
def test_another_version_of_http_is_refused(loop: Loop, line: bytes) -> None:
    async def story(server: Server) -> None:
        client = await server.connect()
        client.send(line + b"\r\nhost: x\r\n\r\n")
        assert (await client.read_answer()).status == 400

    assert run(story, loop).handled == 0


@in_both_loops
def test_what_comes_with_the_request_before_the_last_answer_is_not_asked(loop: Loop) -> None:
    asked: list[str] = []

    def answer_to_the_end(exchange: Exchange) -> None:
        asked.append(exchange.request.path)
        exchange.start(200, [], None)
        exchange.end()

    async def story(server: Server) -> None:
        server.handle = answer_to_the_end  # type: ignore[method-assign]
        client = await server.connect()
        client.send(get(b"/1", b"connection: keep-alive", version=b"1.0"), get(b"/2"))
        await client.read_to_the_end()

    run(story, loop)
    assert asked == ["/1"]
