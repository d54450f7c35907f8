"""The head of an engine's reply: read strictly, and what of it a client gets."""

from __future__ import annotations

from typing import NamedTuple

import httptools

from stoker.gateway.exchange import BODILESS, Headers
from stoker.gateway.framing import Body, BrokenFraming, ChunkedBody, OpenBody, SizedBody

HEAD_LIMIT_BYTES = 64 * 1024
END = b"\r\n\r\n"
HOP_BY_HOP = frozenset({
    b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"te", b"trailer", b"transfer-encoding",
    b"upgrade", b"proxy-connection",
})  # fmt: skip
NOT_RETURNED = HOP_BY_HOP | {b"content-length", b"access-control-allow-origin", b"access-control-allow-credentials"}


class ReplyHead(NamedTuple):
    """What a reply begins with. `length` None: it was not said. `reusable`: another request may follow on the connection."""

    status: int
    headers: Headers
    length: int | None
    is_stream: bool
    reusable: bool
    body: Body


class _Reading:
    def __init__(self) -> None:
        self.headers: Headers = []
        self.is_whole = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self.is_whole = True


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
    found = _Reading()
    parser = httptools.HttpResponseParser(found)
    try:
        parser.feed_data(head)
    except httptools.HttpParserUpgrade:
        pass  # 101: what follows is not HTTP
    except httptools.HttpParserError as problem:
        raise BrokenFraming(str(problem)) from problem
    if not found.is_whole:
        raise BrokenFraming("its reply has no head")
    status = parser.get_status_code()
    lengths = {value for name, value in found.headers if name == b"content-length"}
    codings = [value.lower() for name, value in found.headers if name == b"transfer-encoding"]
    body = _body(status, method, lengths, codings)
    kinds = [value for name, value in found.headers if name == b"content-type"]
    return ReplyHead(
        status,
        [pair for pair in found.headers if pair[0] not in NOT_RETURNED],
        int(lengths.pop()) if lengths else None,
        bool(kinds) and kinds[0].startswith(b"text/event-stream"),
        parser.should_keep_alive() and not isinstance(body, OpenBody),
        body,
    )


def _body(status: int, method: str, lengths: set[bytes], codings: list[bytes]) -> Body:
    if codings and (codings != [b"chunked"] or lengths):
        raise BrokenFraming("its reply's length can be read in two ways")
    if len(lengths) > 1 or not all(length.isdigit() for length in lengths):
        raise BrokenFraming("its reply's length is no number")
    if method == "HEAD" or status in BODILESS:
        return SizedBody(0)
    if codings:
        return ChunkedBody()
    return SizedBody(int(next(iter(lengths)))) if lengths else OpenBody()
