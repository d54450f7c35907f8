"""The little of HTTP/1.1 that the mock engine needs."""

from __future__ import annotations

import asyncio
import json
from typing import cast
from urllib.parse import urlsplit

import httptools


class HttpConnection(asyncio.Protocol):
    """Reads requests and calls `answer` with each."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._body: list[bytes] = []
        self._keep_alive = True

    def answer(self, path: str, query: str, body: bytes) -> None:
        """Answers a request."""
        raise NotImplementedError

    # What the event loop tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Waits for a request."""
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Parses what came."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.transport.close()

    # What the parser tells.

    def on_message_begin(self) -> None:
        """A request begins."""
        self._url, self._body = b"", []

    def on_url(self, url: bytes) -> None:
        """A part of the path."""
        self._url += url

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._body.append(body)

    def on_message_complete(self) -> None:
        """A request is whole."""
        self._keep_alive = bool(self._parser.should_keep_alive())
        parts = urlsplit(self._url.decode("latin-1"))
        self.answer(parts.path, parts.query, b"".join(self._body))

    # What is replied.

    def reply(self, status: int, content: object, more: bytes = b"") -> None:
        """Sends a whole reply as JSON; `more` are whole header lines."""
        body = json.dumps(content, separators=(",", ":")).encode()
        head = b"HTTP/1.1 %d %b\r\nContent-Type: application/json\r\n" % (status, b"OK" if status == 200 else b"Mock")
        self.transport.write(head + more + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.close_if_asked()

    def close_if_asked(self) -> None:
        """Closes after a reply to a request that wanted it so."""
        if not self._keep_alive:
            self.transport.close()
