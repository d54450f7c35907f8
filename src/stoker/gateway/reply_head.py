"""The head of an engine's reply: read strictly, and what of it a client gets."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import httptools

from stoker.gateway.exchange import BODILESS, Headers
from stoker.gateway.framing import Body, BrokenFraming, ChunkedBody, OpenBody, SizedBody

HEAD_LIMIT_BYTES = 64 * 1024
REMEMBERED, REMEMBERED_BYTES = 64, 2 * 1024
SWITCHED = 101
END = b"\r\n\r\n"
HOP_BY_HOP = frozenset({
    b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"te", b"trailer", b"transfer-encoding",
    b"upgrade", b"proxy-connection",
})  # fmt: skip
# A reply's trailers go on. Who answered, and to which request, is the gateway's to say.
NOT_RETURNED = HOP_BY_HOP - {b"trailer"} | {
    b"content-length", b"access-control-allow-origin", b"access-control-allow-credentials", b"x-request-id",
}  # fmt: skip
OURS = b"x-stoker-"


class ReplyHead(NamedTuple):
    """What a reply begins with. `length` None: it was not said. `reusable`: another request may follow on the connection.

    `is_uvicorn`: the server says that it is uvicorn, as under vLLM and SGLang.
    """

    status: int
    headers: Headers
    length: int | None
    is_stream: bool
    reusable: bool
    is_uvicorn: bool
    body: Body


class _Reading:
    def __init__(self) -> None:
        self.headers: Headers = []
        self.status = 0
        self.is_whole = False
        self.is_kept = False

    def read(self, head: bytes) -> None:
        parser = self._parser = httptools.HttpResponseParser(self)
        try:
            parser.feed_data(head)
        except httptools.HttpParserUpgrade:
            pass  # 101: what follows is not HTTP
        finally:
            self.status = parser.get_status_code()
            del self._parser  # it holds this, too

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value.rstrip(b" \t")))  # llhttp leaves the space after a value in it

    def on_headers_complete(self) -> None:
        self.is_whole = True
        self.is_kept = self._parser.should_keep_alive()  # of a reply without a body it has forgotten that later


def split_head(data: bytes) -> tuple[bytes, bytes] | None:
    """Returns a head and what follows it, or None where it has not come whole; raises BrokenFraming for an endless one."""
    end = data.find(END)
    if end < 0:
        if len(data) > HEAD_LIMIT_BYTES:
            raise BrokenFraming("its reply's head does not end")
        return None
    return data[: end + len(END)], data[end + len(END) :]


def read_head(head: bytes, method: str) -> ReplyHead:
    """Reads a head; raises BrokenFraming where it is not HTTP or could be read in two ways."""
    said = _read(head) if len(head) <= REMEMBERED_BYTES else _read.__wrapped__(head)
    body = _body(said, method)
    reusable = said.is_kept and not isinstance(body, OpenBody)
    return ReplyHead(said.status, said.headers, said.length, said.is_stream, reusable, said.is_uvicorn, body)


class _Said(NamedTuple):
    status: int
    headers: Headers
    length: int | None
    is_stream: bool
    is_kept: bool
    is_uvicorn: bool
    is_chunked: bool


# Heads of one engine's replies in one second are the same to the byte: py-spy saw 6 % of a request's time here.
@lru_cache(REMEMBERED)
def _read(head: bytes) -> _Said:
    found = _Reading()
    try:
        found.read(head)
    except httptools.HttpParserError as problem:
        raise BrokenFraming(str(problem)) from problem
    if not found.is_whole:
        raise BrokenFraming("its reply has no head")
    lengths = {value for name, value in found.headers if name == b"content-length"}
    codings = [value.lower() for name, value in found.headers if name == b"transfer-encoding"]
    if codings and (codings != [b"chunked"] or lengths):
        raise BrokenFraming("its reply's length can be read in two ways")
    if len(lengths) > 1 or not all(length.isdigit() for length in lengths):
        raise BrokenFraming("its reply's length is no number")
    returned = [pair for pair in found.headers if pair[0] not in NOT_RETURNED and not pair[0].startswith(OURS)]
    length = int(lengths.pop()) if lengths else None
    is_uvicorn = (b"server", b"uvicorn") in found.headers
    return _Said(found.status, returned, length, _is_stream(found.headers), found.is_kept, is_uvicorn, bool(codings))


def _is_stream(headers: Headers) -> bool:
    """Tells whether events can be added to the body; to a compressed one they cannot."""
    said = dict(headers)
    is_plain = said.get(b"content-encoding", b"identity").lower() == b"identity"
    return is_plain and said.get(b"content-type", b"").lower().startswith(b"text/event-stream")


def _body(said: _Said, method: str) -> Body:
    if said.status == SWITCHED:
        return OpenBody()
    if method == "HEAD" or said.status in BODILESS:
        return SizedBody(0)
    if said.is_chunked:
        return ChunkedBody()
    return OpenBody() if said.length is None else SizedBody(said.length)
