"""What a client gets whose stream was begun with comments, where no stream follows: one event that its library reads."""

from __future__ import annotations

import http

import msgspec

from stoker.gateway.anthropic import anthropic_error, is_anthropic

MESSAGE_SHOWN = 4000


def late_event(path: str, status: int, body: bytes) -> bytes:
    """Returns a whole reply as an event; one that is an error becomes one that the path's clients raise."""
    if status == http.HTTPStatus.OK:
        return _event(b"", body)
    is_named = is_anthropic(path) or path.endswith("/v1/responses")
    return _event(b"event: error\n" if is_named else b"", body if _is_error(body) else _wrapped(path, status, body))


def _event(name: bytes, body: bytes) -> bytes:
    return name + b"".join(b"data: %s\n" % line for line in body.splitlines()) + b"\n"


def _is_error(body: bytes) -> bool:
    return "error" in _read(body)


def _read(body: bytes) -> dict[str, object]:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _wrapped(path: str, status: int, body: bytes) -> bytes:
    said = str(_read(body).get("message") or body.decode("utf-8", "replace"))[:MESSAGE_SHOWN]
    message = f"The engine answered {status}: {said}"
    if is_anthropic(path):
        return anthropic_error(status, message, "engine_error")
    return msgspec.json.encode({"error": {"message": message, "type": "engine_error", "param": None, "code": str(status)}})
