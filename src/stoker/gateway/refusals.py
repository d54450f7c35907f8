"""The gateway's own errors, in the shape of the path's protocol; `src` says that the gateway refused, not an engine."""

from __future__ import annotations

import logging

import msgspec

from stoker.gateway.anthropic import anthropic_error, anthropic_event, is_anthropic
from stoker.gateway.exchange import Exchange, Headers
from stoker.gateway.keyring import Denial

JSON = (b"content-type", b"application/json")
BAD_REQUEST = "invalid_request_error"
logger = logging.getLogger("stoker.gateway")


def error_body(message: str, kind: str, code: str, param: str | None = None) -> bytes:
    """Returns the JSON body of an error."""
    return msgspec.json.encode({"error": _fields(message, kind, code, param)})


def _fields(message: str, kind: str, code: str, param: str | None = None) -> dict[str, str | None]:
    return {"message": message, "type": kind, "param": param, "code": code, "src": "stoker"}


def refuse(
    exchange: Exchange, status: int, code: str, message: str,
    *, kind: str = BAD_REQUEST, param: str | None = None, headers: Headers | None = None,
) -> None:  # fmt: skip
    """Answers with an error."""
    if is_anthropic(exchange.request.path):
        body = anthropic_error(status, message, code)
    else:
        body = error_body(message, kind, code, param)
    exchange.reply(status, [JSON, *(headers or [])], body)


def end_failed(exchange: Exchange) -> None:
    """Ends a request that a fault of ours broke, while that fault is handled; says so where no reply has begun."""
    logger.exception("path=%s failed", exchange.request.path)
    if exchange.status is None and not exchange.done:
        refuse(exchange, 500, "internal_error", "Stoker failed here; see daemon.log.", kind="server_error")
    else:
        exchange.note_broken(500)
        exchange.abort()


def error_event(path: str, denial: Denial) -> bytes:
    """Returns an SSE event that ends a stream which broke: the path's clients raise its message as an error.

    The leading blank line closes an event of which only a part had come.
    """
    if is_anthropic(path):
        return b"\n\n" + anthropic_event(denial.status, denial.message, denial.code)
    if path.endswith("/v1/responses"):
        return b"\n\n" + _responses_event(denial)
    return b"\n\ndata: " + error_body(denial.message, denial.kind, denial.code) + b"\n\n"


def _responses_event(denial: Denial) -> bytes:
    # OpenAI numbers the events of this protocol; how many came is not known here, since bytes are passed on unread.
    event = {"type": "error", "code": denial.code, "message": denial.message, "param": None, "sequence_number": 0}
    # `error` beside it: OpenAI's Python client takes an event without it for a part of the answer, and raises nothing.
    error = _fields(denial.message, denial.kind, denial.code)
    return b"event: error\ndata: " + msgspec.json.encode({**event, "error": error}) + b"\n\n"
