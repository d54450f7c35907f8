"""The wire: stamps that the kernel made, private connections, and replies framed in every way."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from bad_endpoint import EVENT, STREAM_HEAD, bad_endpoint, chunk, make_certificate, says
from home import wait_for
from stoker.bench.asking import Asker
from stoker.bench.exchange import Exchange
from stoker.bench.origin import Origin
from stoker.bench.stamps import Read, ask_for_stamps, read_event, read_stamped, wall_offset_ns


def asked(url: str, limit_s: float = 5.0) -> Exchange:
    """Returns what a server answers."""
    asker = Asker(Origin(url))
    try:
        return asker.send("GET", "/", limit_s=limit_s)
    finally:
        asker.close()


@pytest.fixture
def stamping() -> Iterator[None]:
    """A kernel that stamps what comes: it begins a moment after the first socket asked it to, and ends with the last one."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as reader:
        writer, _ = server.accept()
        assert ask_for_stamps(reader)
        reader.settimeout(5.0)
        with writer:
            wait_for("the kernel to stamp", lambda: writer.send(b"x") and read_stamped(reader, wall_offset_ns(), 0.0).lag_s)
            yield


@pytest.mark.usefixtures("stamping")
def test_the_stamp_is_when_it_came_and_not_when_it_was_read() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as reader:
        writer, _ = server.accept()
        assert ask_for_stamps(reader)
        begun_s = time.perf_counter()
        with writer:
            writer.sendall(b"token")
            came = threading.Event()
            reader.recv(1, socket.MSG_PEEK)  # returns once it is there
            came.set()
            late_s = time.perf_counter()
            read = read_stamped(reader, wall_offset_ns(), begun_s)
    assert read.data == b"token"
    assert read.lag_s is not None
    assert begun_s <= read.at_s < late_s


class Seen(NamedTuple):
    """What was read of two writes, and when they were made."""

    begun_s: float
    between_s: float
    reads: list[Read]


def read_two_writes(token: bytes, end: bytes) -> Seen:
    """Returns what is read, until nothing comes, of two writes that have both come before the first look."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as reader:
        writer, _ = server.accept()
        writer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # As after a connection's first exchanges: what was acknowledged already, the kernel joins with what follows.
        reader.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
        reader.settimeout(5.0)
        assert ask_for_stamps(reader)
        begun_s = time.perf_counter()
        with writer:
            writer.sendall(token)
            reader.recv(1, socket.MSG_PEEK)  # returns once it is there
            between_s = time.perf_counter()
            writer.sendall(end)
            while len(reader.recv(100, socket.MSG_PEEK)) < len(token + end):
                pass
            offset_ns = wall_offset_ns()
        reads: list[Read] = []
        while not reads or reads[-1].data:
            reads.append(read_event(reader, offset_ns, begun_s))
    return Seen(begun_s, between_s, reads)


@pytest.mark.usefixtures("stamping")
def test_what_one_read_would_bring_of_two_writes_has_two_stamps() -> None:
    token, end = b"data: token\n\n", b"data: end\n\n"
    # A busy machine acknowledges the first before the second comes, in some of ten times, and then the kernel joins them.
    tries = (read_two_writes(token, end) for _ in range(20))
    seen = next(one for one in tries if one.reads[0].data != token + end)
    first, second, closing = seen.reads
    assert (first.data, second.data, closing.data) == (token, end, b"")
    assert seen.begun_s <= first.at_s < seen.between_s < second.at_s


def test_what_came_at_once_stays_together_and_an_unfinished_event_is_read_too() -> None:
    sent = b"data: one\n\ndata: two\n\ndata: thr"
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as reader:
        writer, _ = server.accept()
        ask_for_stamps(reader)
        with writer:
            writer.sendall(sent)
            reader.recv(1, socket.MSG_PEEK)
            read = read_event(reader, wall_offset_ns(), 0.0)
    assert read.data == sent


def test_a_stamp_of_a_clock_that_was_set_is_not_believed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as reader:
        writer, _ = server.accept()
        ask_for_stamps(reader)
        with writer:
            writer.sendall(b"token")
            read = read_stamped(reader, wall_offset_ns() + 3600 * 10**9, 0.0 + time.perf_counter() - 60)
    assert (read.data, read.lag_s) == (b"token", None)


FRAMED = {
    "chunked": STREAM_HEAD + chunk(EVENT) + b"0\r\n\r\n",
    "by length": b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(EVENT) + EVENT,
    "by the end of the connection": b"HTTP/1.0 200 OK\r\n\r\n" + EVENT,
    "after an interim reply": b"HTTP/1.1 100 Continue\r\n\r\n" + STREAM_HEAD + chunk(EVENT) + b"0\r\n\r\n",
}


@pytest.mark.parametrize("how", FRAMED)
def test_a_reply_is_whole_however_it_is_framed(how: str) -> None:
    with bad_endpoint(says(FRAMED[how])) as url:
        exchange = asked(url)
    assert (exchange.status, exchange.problem, exchange.body()) == (200, "", EVENT)


@pytest.mark.usefixtures("stamping")
def test_a_private_connection_has_stamps_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with bad_endpoint(says(FRAMED["chunked"]), certificate) as url:
        exchange = asked(url)
    assert (exchange.status, exchange.problem, exchange.body()) == (200, "", EVENT)
    assert exchange.lags_s


def test_a_certificate_that_nobody_knows_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with bad_endpoint(says(FRAMED["chunked"]), make_certificate(tmp_path)) as url:
        assert "certificate verify failed" in asked(url).problem
