"""A client that shows exactly what came back, whole or not."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Protocol

import httptools

CHAT = "/v1/chat/completions"
SEQUENCE = re.compile(rb"#(\d{6}):\d{19}:\d{19};")
STAMP_BYTES = 64
SHORT = "mock ttft=1 itl=1 tokens=3"
TIMEOUT_S = 20.0


class Asked(Protocol):
    """Whoever is asked: a gateway, or the engine itself."""

    port: int
    headers: dict[str, str]


class Reply:
    """What came of one request; `end` says how it ended."""

    keeps_body = True

    def __init__(self) -> None:
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self._body = bytearray()
        self.chunks = 0
        self.end = "timeout"
        self.parser = httptools.HttpResponseParser(self)
        self._unread = b""

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self.headers[name.decode().lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self.status = self.parser.get_status_code()

    def on_body(self, data: bytes) -> None:
        """Counts stamps, of which one may be cut in two."""
        if self.keeps_body:
            self._body += data
        unread = self._unread + data
        found = list(SEQUENCE.finditer(unread))
        self.chunks += len(found)
        self._unread = unread[max(found[-1].end() if found else 0, len(unread) - STAMP_BYTES) :]

    def on_message_complete(self) -> None:
        """The reply is whole, as far as HTTP can tell."""
        self.end = "complete"

    @property
    def body(self) -> bytes:
        """The body, as far as it came."""
        return bytes(self._body)

    @property
    def is_done(self) -> bool:
        """Tells whether a stream ended as OpenAI's do."""
        return b"data: [DONE]" in self.body

    @property
    def error_event(self) -> str | None:
        """The event of a stream that tells of an error."""
        events = (line for line in self.body.split(b"\n") if self.status == 200 and b'"error"' in line)
        return next((line.decode("utf-8", "replace") for line in events), None)

    def describe(self) -> str:
        """Returns a line: status, chunks, how it ended, and what it said of errors."""
        words = [str(self.status or "no status"), f"{self.chunks} chunks", self.end, *(["[DONE]"] if self.is_done else [])]
        return ", ".join([*words, *(["an error event"] if self.error_event else [])])


class Counter(Reply):
    """A reply whose chunks are counted, and whose body is not kept."""

    keeps_body = False


def connect(port: int, receive_bytes: int | None = None) -> socket.socket:
    """Connects; `receive_bytes` makes the kernel take little ahead of the reader."""
    client = socket.socket()
    if receive_bytes is not None:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    client.settimeout(TIMEOUT_S)
    client.connect(("127.0.0.1", port))
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def render_head(asked: Asked, length: int, more: Sequence[str] = ()) -> bytes:
    """Returns a chat request's head."""
    lines = [f"POST {CHAT} HTTP/1.1", f"Host: 127.0.0.1:{asked.port}", "Content-Type: application/json"]
    lines += [f"Content-Length: {length}", *(f"{name}: {value}" for name, value in asked.headers.items()), *more]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def render_chat(text: str, stream: bool = True, model: str = "mock", fields: Mapping[str, object] | None = None) -> bytes:
    """Returns a chat's body, with more fields where given."""
    messages = [{"role": "user", "content": text}]
    return json.dumps({"model": model, "stream": stream, **(fields or {}), "messages": messages}).encode()


def send(client: socket.socket, asked: Asked, body: bytes, more: Sequence[str] = ()) -> None:
    """Sends a chat."""
    client.sendall(render_head(asked, len(body), more) + body)


def read(client: socket.socket, reply: Reply, limit_s: float = TIMEOUT_S, chunks: int | None = None) -> Reply:
    """Reads until the reply ends, has so many chunks, or the time is over."""
    end_s = time.monotonic() + limit_s
    while reply.end == "timeout" and (chunks is None or reply.chunks < chunks):
        left_s = end_s - time.monotonic()
        if left_s <= 0:
            break
        client.settimeout(left_s)
        _read_once(client, reply)
    return reply


def _read_once(client: socket.socket, reply: Reply) -> None:
    try:
        data = client.recv(1 << 16)
        if data:
            reply.parser.feed_data(data)
        else:
            reply.end = "closed before its end"
    except TimeoutError:
        pass
    except OSError as problem:
        reply.end = f"cut ({type(problem).__name__})"
    except httptools.HttpParserError as problem:
        reply.end = f"no HTTP ({problem})"


def ask(
    asked: Asked, text: str = SHORT, *, stream: bool = True, limit_s: float = TIMEOUT_S, raw: bytes | None = None,
    more: Sequence[str] = (), fields: Mapping[str, object] | None = None,
) -> Reply:  # fmt: skip
    """Asks once on a connection of its own; `raw` is a body, `more` are header lines, `fields` go into the body."""
    body = render_chat(text, stream, fields=fields) if raw is None else raw
    reply = Reply()
    try:
        with connect(asked.port) as client:
            try:
                send(client, asked, body, more)
            except OSError:
                read(client, reply, limit_s)  # a refusal may have come before all was sent
                reply.end = f"{reply.end}, not all was taken"
                return reply
            return read(client, reply, limit_s)
    except OSError as problem:
        reply.end = f"not connected ({type(problem).__name__})"
        return reply
