"""The gateway's own errors, in OpenAI's shape; `src` says that the gateway refused, not an engine."""

from __future__ import annotations

import msgspec

from stoker.gateway.exchange import Exchange, Headers

JSON = (b"content-type", b"application/json")
BAD_REQUEST = "invalid_request_error"


def error_body(message: str, kind: str, code: str, param: str | None = None) -> bytes:
    """Returns the JSON body of an error."""
    fields = {"message": message, "type": kind, "param": param, "code": code, "src": "stoker"}
    return msgspec.json.encode({"error": fields})


def refuse(
    exchange: Exchange, status: int, code: str, message: str,
    *, kind: str = BAD_REQUEST, param: str | None = None, headers: Headers | None = None,
) -> None:  # fmt: skip
    """Answers with an error."""
    exchange.reply(status, [JSON, *(headers or [])], error_body(message, kind, code, param))


def error_event(message: str, code: str) -> bytes:
    """Returns an SSE event that ends a stream which broke: OpenAI's clients raise its message as an error.

    The leading blank line closes an event of which only a part had come.
    """
    return b"\n\ndata: " + error_body(message, "engine_error", code) + b"\n\n"
