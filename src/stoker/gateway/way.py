"""The way to an engine, or to another box's: what every request to it begins with, and what every reply from it says."""

from __future__ import annotations

from stoker.gateway.exchange import Headers, Request, render_lines
from stoker.gateway.reply_head import HOP_BY_HOP
from stoker.records import Endpoint

WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS", "DELETE"})  # as a rule; a length of 0 would say nothing new
NOT_FORWARDED = HOP_BY_HOP | {
    b"host", b"authorization", b"content-length", b"expect", b"cookie", b"origin", b"x-api-key", b"x-request-id",
}  # fmt: skip
SWITCHING = [(b"connection", b"Upgrade"), (b"upgrade", b"websocket")]
USUAL = ([b"keep-alive"], [b"close"])


class Way:
    """To one endpoint; made once for many requests. `key` is shown to the engine; `box` is this one's name."""

    def __init__(self, endpoint: Endpoint, key: str, box: str = "") -> None:
        self.endpoint = endpoint
        service, box = endpoint.service.partition("@")[0], endpoint.box or box
        # The other box answers for exactly this service and plan, or refuses.
        self._prefix = f"/box/{service}/{endpoint.plan_id}".encode() if endpoint.box else b""
        self._shown = b"host: %s:%d\r\nauthorization: Bearer %s\r\n" % (endpoint.host.encode(), endpoint.port, key.encode())
        self._connection = [(b"connection", b"keep-alive" if endpoint.reuses_connections else b"close")]
        self.identity: Headers = [
            (b"x-stoker-service", service.encode()),
            (b"x-stoker-model", endpoint.model.encode()),
            (b"x-stoker-revision", endpoint.revision.encode()),
            (b"x-stoker-plan", endpoint.plan_id.encode()),
        ]
        self.identity += [(b"x-stoker-box", box.encode())] if box else []
        self.identity += [(b"x-stoker-filters", endpoint.changes.encode())] if endpoint.changes else []

    def render_head(self, request: Request, request_id: bytes) -> bytes:
        """Returns the head of a request as the engine gets it."""
        dropped = NOT_FORWARDED | named if (named := _named_by_connection(request)) else NOT_FORWARDED
        kept = [pair for pair in request.headers if pair[0] not in dropped]
        kept += SWITCHING if request.is_websocket else self._connection
        if request_id:
            kept.append((b"x-request-id", request_id))
        if request.body or request.method not in WITHOUT_BODY:
            kept.append((b"content-length", b"%d" % len(request.body)))
        target = self._prefix + (request.target or request.path.encode())
        first = b"%s %s HTTP/1.1\r\n" % (request.method.encode(), target)
        return b"".join((first, self._shown, render_lines(kept), b"\r\n"))


def _named_by_connection(request: Request) -> frozenset[bytes]:
    """Returns the headers that are for this hop alone because `Connection` names them (RFC 9110, 7.6.1)."""
    said = [value.lower() for name, value in request.headers if name == b"connection"]
    if not said or said in USUAL:
        return frozenset()
    return frozenset(word.strip() for word in b",".join(said).split(b","))
