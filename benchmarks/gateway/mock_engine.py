"""A mock engine that answers chats at a given pace, fails on demand, and stamps every chunk (`mock_order.py` has the words).

    python -m benchmarks.gateway.mock_engine --port 9001 [--name A] [--model mock] [--core 0]

Each chunk carries `#number:received:sent;`, the last two in nanoseconds of this machine's monotonic clock: when the request
had fully arrived, and when the chunk was written. A client on the same machine knows each chunk's time under way exactly.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import math
import os
import resource
import time
import zlib
from urllib.parse import parse_qs

import uvloop

from benchmarks.gateway.mock_http import HttpConnection
from benchmarks.gateway.mock_order import Order, read_order
from benchmarks.gateway.mock_stats import Event, Stats
from benchmarks.gateway.mock_words import DONE, SSE_HEAD, Words, checksum_event, failure, framed, stamp

BURST = 32  # chunks written a turn of the loop where no pace is asked for
BACKLOG = 4096
ABOUT = ("/get_server_info", "/server_info", "/get_model_info", "/model_info")  # what routers ask before they take an engine


class Engine(HttpConnection):
    """One connection to the engine."""

    def __init__(self, stats: Stats, words: Words, name: str) -> None:
        super().__init__()
        self._stats = stats
        self._words = words
        self._name = name
        self._timer: asyncio.Handle | None = None
        self._event: Event | None = None
        self._busy = self._paused = False

    def connection_lost(self, error: Exception | None) -> None:
        """Notes that whoever asked has left."""
        if self._busy:
            self._end("aborted")

    def pause_writing(self) -> None:
        """The reader is slower than an engine without a pace."""
        self._paused = True

    def resume_writing(self) -> None:
        """The reader has caught up."""
        self._paused = False
        if self._busy and not self._order.itl_s and self._number:
            self._timer = self._loop.call_soon(self._tick)

    def answer(self, path: str, query: str, body: bytes) -> None:
        """Answers a request."""
        if path == "/v1/chat/completions":
            self._received_ns = time.monotonic_ns()
            self._chat(body)
        else:
            self.reply(*self._small_answer(path, query))

    def _small_answer(self, path: str, query: str) -> tuple[int, object]:
        if path == "/v1/models":
            return 200, self._words.models()
        if path == "/mock/stats":
            return 200, self._stats.report()
        if path == "/mock/reset":
            self._stats.reset()
            return 200, {}
        if path == "/mock/events":
            return 200, self._stats.report_events(parse_qs(query).get("tag", [""])[0])
        if path in ("/health", "/", "/ping"):
            return 200, {"status": "ok"}
        if path in ABOUT:
            return 200, {"model_path": "mock", "served_model_name": "mock", "model_type": "mock"}
        return 404, failure("no such path", "not_found")

    # A chat.

    def _chat(self, body: bytes) -> None:
        self._stats.requests += 1
        try:
            order = self._order = read_order(body, self._name)
        except ValueError:
            self.reply(400, failure("engine: invalid JSON", "invalid_request_error"))
            return
        self._number, self._checksum = 0, 0
        self._remember(order, len(body))
        if order.status is not None:
            self._refuse(order.status)
            return
        self._busy = True
        self._stats.begin()
        self._begin(order)

    def _remember(self, order: Order, body_bytes: int) -> None:
        self._event = None
        if order.tag is not None:
            self._event = Event(self._name, self._received_ns, body_bytes, self.transport.get_write_buffer_size)
            self._stats.events.setdefault(order.tag, []).append(self._event)

    def _refuse(self, status: int) -> None:
        more = b"x-mock-error: yes\r\n" + (b"Retry-After: 7\r\n" if status in (429, 503) else b"")
        self.reply(status, failure(f"mock engine says {status}", "mock_error", f"mock_{status}"), more)
        self._close_event(f"status {status}")

    def _begin(self, order: Order) -> None:
        self._due_s = self._loop.time() + order.ttft_s
        if order.steps and order.itl_s:
            self._due_s = math.ceil(self._due_s / order.itl_s) * order.itl_s
        if not order.stream:
            self._timer = self._loop.call_at(self._due_s + order.itl_s * order.tokens, self._answer_whole)
        elif order.die_after == 0:
            self._break_off()
        else:
            self.transport.write(SSE_HEAD)
            self._timer = self._loop.call_at(self._due_s, self._tick)

    def _answer_whole(self) -> None:
        if self._order.die_after >= 0:
            self._break_off()
            return
        text = stamp(0, self._received_ns, time.monotonic_ns()).decode()
        self._end("finished")
        self.reply(200, self._words.whole(text, self._order.tokens))

    def _tick(self) -> None:
        if not self._busy:
            return
        itl_s = self._order.itl_s
        for _ in range(1 if itl_s else BURST):
            if self._number == self._order.die_after:
                self._break_off()
                return
            self._write_chunk()
            if self._number >= self._order.tokens and self._order.die_after != self._number:
                self._finish()
                return
            if self._paused and not itl_s:
                return  # resume_writing goes on
        self._due_s += itl_s
        self._timer = self._loop.call_at(self._due_s, self._tick) if itl_s else self._loop.call_soon(self._tick)

    def _write_chunk(self) -> None:
        if self._order.itl_s:
            self._stats.late_ns.append(int((self._loop.time() - self._due_s) * 1e9))
        data = self._words.chunk(self._number, self._received_ns, time.monotonic_ns(), self._order.pad)
        if self._order.summed:
            self._checksum = zlib.crc32(data, self._checksum)
        data = framed(data)
        self.transport.write(data)
        self._number += 1
        self._stats.chunks += 1
        if self._event is not None:
            self._event.chunks = self._number
            self._event.written_bytes += len(data)

    def _finish(self) -> None:
        tail = self._words.tail(self._order.tokens if self._order.usage else None)
        if self._order.summed:
            tail += checksum_event(zlib.crc32(tail, self._checksum))
        self.transport.write(framed(tail + DONE) + b"0\r\n\r\n")
        self._end("finished")
        self.close_if_asked()

    def _break_off(self) -> None:
        if self._order.how == "hang":
            return
        self._end("broke off")
        if self._order.how == "fin":
            self.transport.close()
        else:
            self.transport.abort()

    def _end(self, how: str) -> None:
        self._busy = False
        if self._timer is not None:
            self._timer.cancel()
        self._stats.end(is_aborted=how == "aborted")
        self._close_event(how)

    def _close_event(self, how: str) -> None:
        if self._event is not None:
            self._event.close(how)
            self._event = None


async def serve(port: int, name: str, model: str) -> None:
    """Serves until it is told to stop."""
    loop, stats, words = asyncio.get_running_loop(), Stats(), Words(name, model)
    server = await loop.create_server(lambda: Engine(stats, words, name), "127.0.0.1", port, backlog=BACKLOG)
    gc.collect()
    gc.freeze()
    async with server:
        await server.serve_forever()


def main() -> None:
    """Reads the options and serves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--name", default="A", help="stands in its ids; what the word `only` means")
    parser.add_argument("--model", default="mock")
    parser.add_argument("--core", type=int, help="the processor core that it keeps to")
    options = parser.parse_args()
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    uvloop.run(serve(options.port, options.name, options.model))


if __name__ == "__main__":
    main()
