"""Reads a client's requests strictly: what is malformed, too large or could be read in two ways is refused."""

from __future__ import annotations

from typing import Protocol
from urllib.parse import unquote

import httptools

from stoker.gateway.exchange import Headers, Request
from stoker.gateway.keyring import Denial
from stoker.gateway.refusals import BAD_REQUEST
from stoker.gateway.target import origin_form

HEAD_LIMIT_BYTES = 64 * 1024
ANYBODYS_BODY_BYTES = 64 * 1024  # what is read, and held, before anybody has looked at the key
FRAMING = frozenset({b"content-length", b"transfer-encoding"})


class BadRequest(Exception):
    """A request that is not read on; nothing that follows it can be trusted."""

    def __init__(
        self, status: int, code: str, message: str, kind: str = BAD_REQUEST, retry_after_s: int | None = None
    ) -> None:
        super().__init__(message)
        self.denial = Denial(status, code, message, kind, retry_after_s)


class Listener(Protocol):
    """Who is told what comes."""

    def begun(self) -> None:
        """A request begins."""

    def large_body(self, headers: Headers) -> None:
        """Its body is larger than is read of everybody; raises BadRequest where its sender is not known."""

    def head_read(self, expects: bool) -> None:
        """Its head is there; `expects`: its client waits for a word before it sends the body."""

    def body_read(self, size_bytes: int) -> None:
        """A piece of its body came."""

    def request_read(self, request: Request) -> None:
        """It is whole."""


class RequestReader:
    """One connection's requests, one after another. `in_message`: one has begun and is not whole."""

    def __init__(self, listener: Listener, body_limit_bytes: int) -> None:
        self.in_message = False
        self._listener = listener
        self._body_limit_bytes = body_limit_bytes
        self._parser = httptools.HttpRequestParser(self)
        self._idle_bytes = 0
        self._clear()

    def _clear(self) -> None:
        self._in_body = self._is_known = False
        self._url = b""
        self._headers: Headers = []
        self._body = bytearray()

    def give_up(self) -> Request:
        """Returns what was read of the head of a request that is not whole, and lets go of its body."""
        url, headers = (self._url, self._headers) if self.in_message else (b"", [])
        self._clear()  # while the refusal lingers, nobody needs the body
        path = unquote(origin_form(url, [], "")[0].partition(b"?")[0].decode("latin-1"))
        return Request("GET", path, b"", headers, b"", "1.1", keep_alive=False)

    def feed(self, data: bytes) -> None:
        """Reads what came; raises BadRequest."""
        self._idle_bytes += len(data)  # set to 0 by whatever the parser finds in it
        after_offer = None
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            # The request stands, the offer is passed over (RFC 9110, 7.8): Java's client and curl --http2 make it.
            after_offer = data[offer.args[0] :]
        except httptools.HttpParserError as problem:
            raise _refusal_of(problem) from None  # no name for it here: it would hold this frame, and this frame it
        else:
            if self._idle_bytes > HEAD_LIMIT_BYTES:  # a head, a trailer or a chunk's extension that does not end
                raise _head_too_large()
        if after_offer is not None and self.in_message:  # not above, where a refusal's own context would be lost
            self._read_body_after_offer(after_offer)

    def close(self) -> None:
        """Lets go of its listener, and of the parser, which both hold it; nothing is fed any more."""
        del self._listener, self._parser

    def _read_body_after_offer(self, rest: bytes) -> None:
        """Reads the body that httptools leaves alone where a request offers to change the protocol."""
        framing = (b"%s: %s\r\n" % (name, value) for name, value in self._headers if name in FRAMING)
        method, version = self._parser.get_method(), self._parser.get_http_version().encode()
        self._parser = httptools.HttpRequestParser(_BodyOnly(self))
        head = b"%s / HTTP/%s\r\nconnection: close\r\n%s\r\n" % (method, version, b"".join(framing))
        self.feed(head + rest)

    # What the parser tells.

    def on_message_begin(self) -> None:
        """A request begins."""
        self._clear()
        self.in_message = True
        self._idle_bytes = 0
        self._listener.begun()

    def on_url(self, url: bytes) -> None:
        """A part of the request's target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header; a trailer is dropped, since it could pass for one (RFC 9110, 6.5.1)."""
        if not self._in_body:
            self._headers.append((name.lower(), value.rstrip(b" \t")))  # llhttp leaves the space after a value in it

    def on_headers_complete(self) -> None:
        """Refuses a body that says it will be too large, before it is sent."""
        self._in_body = True
        self._idle_bytes = 0
        self._check_start()
        head_bytes, encodings, expects = len(self._url), 0, False
        for name, value in self._headers:
            head_bytes += len(name) + len(value) + 4
            if name == b"content-length":
                self._check_size(int(value))
            if name == b"transfer-encoding":
                encodings += 1
                self._check_encoding(value, encodings)
            expects = expects or (name == b"expect" and value.lower() == b"100-continue")
        if head_bytes > HEAD_LIMIT_BYTES:
            raise _head_too_large()
        self._listener.head_read(expects)

    def _check_start(self) -> None:
        """Refuses what llhttp takes: HTTP/0.9 with a head, and tunnels."""
        if self._parser.get_http_version() not in ("1.0", "1.1"):
            raise BadRequest(400, "malformed_request", "Only HTTP/1.1 and HTTP/1.0 are spoken here.")
        if self._parser.get_method() == b"CONNECT":
            raise BadRequest(400, "malformed_request", "This is no proxy: CONNECT is not spoken here.")

    def _check_encoding(self, value: bytes, count: int) -> None:
        """Refuses other encodings than the engine would be told of, which llhttp takes."""
        if value.lower() != b"chunked" or count > 1:
            raise BadRequest(400, "malformed_request", "The only Transfer-Encoding that is understood here is `chunked`.")

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._idle_bytes = 0
        self._check_size(len(self._body) + len(body))
        self._body += body
        self._listener.body_read(len(body))

    def _check_size(self, size_bytes: int) -> None:
        """Refuses a body over the limit, and one of a stranger well before."""
        if size_bytes > self._body_limit_bytes:
            limit_mib = self._body_limit_bytes / 1024**2
            message = f"The request's body is over {limit_mib:.0f} MiB (gateway.body_limit_bytes in stoker.toml)."
            raise BadRequest(413, "body_too_large", message)
        if size_bytes > ANYBODYS_BODY_BYTES and not self._is_known:
            self._listener.large_body(self._headers)
            self._is_known = True

    def on_message_complete(self) -> None:
        """A whole request is there."""
        if not self._has_body_after_offer():
            self.in_message = False
            self._idle_bytes = 0
            self._listener.request_read(self._request())

    def _has_body_after_offer(self) -> bool:
        return self._parser.should_upgrade() and any(name in FRAMING for name, _ in self._headers)

    def _request(self) -> Request:
        parser, offers = self._parser, self._parser.should_upgrade()
        url, headers, body = self._url, self._headers, self._body
        self._body = bytearray()  # a connection lives longer than its request
        if not url.startswith(b"/"):
            url, headers = origin_form(url, headers, parser.get_http_version())
        target, _, query = url.partition(b"?")
        keep_alive = parser.should_keep_alive() and not offers
        return Request(
            parser.get_method().decode(), unquote(target.decode("latin-1")), query, headers, body,
            parser.get_http_version(), keep_alive, url, offers and self._offers_websocket(),
        )  # fmt: skip

    def _offers_websocket(self) -> bool:
        # Any other method is no offer (RFC 6455, 4.1), so that none reaches the paths that only take POST.
        offered = {value.lower() for name, value in self._headers if name == b"upgrade"}
        is_get = self._parser.get_method() == b"GET" and self._parser.get_http_version() == "1.1"
        return is_get and b"websocket" in offered


class _BodyOnly:
    """What a parser tells that reads a body whose head was read before."""

    def __init__(self, reader: RequestReader) -> None:
        self.on_body = reader.on_body
        self.on_message_complete = reader.on_message_complete


def _refusal_of(problem: httptools.HttpParserError) -> BadRequest:
    ours = problem.__context__
    malformed = BadRequest(400, "malformed_request", f"This is not an HTTP/1.1 request: {problem}.")
    return ours if isinstance(ours, BadRequest) else malformed


def _head_too_large() -> BadRequest:
    return BadRequest(431, "head_too_large", f"The request's head is over {HEAD_LIMIT_BYTES // 1024} KiB.")
