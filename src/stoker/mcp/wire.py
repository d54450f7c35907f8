"""The protocol's lines: one JSON-RPC message each way a line, and what is wrong with one that is none."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
UNSUPPORTED_VERSION = -32022
MOST_BYTES = 4 * 1024**2
Id = str | int


class RpcError(Exception):
    """A request that cannot be answered; `code` is one of JSON-RPC's or the protocol's."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class Asked(NamedTuple):
    """A request; `id` None is a notification, which gets no reply."""

    id: Id | None
    method: str
    params: dict[str, Any]


class _Message(msgspec.Struct):
    """Whatever a client sends: a request has `method` and `id`, a notification `method` alone, a reply neither."""

    jsonrpc: str = ""
    id: Id | msgspec.UnsetType | None = msgspec.UNSET
    method: str | None = None
    params: dict[str, Any] | None = None


_decoder = msgspec.json.Decoder(_Message)


def read_message(line: bytes) -> Asked | None:
    """Returns the request in a line, None for an empty line or a reply, of which none is awaited; raises RpcError."""
    if not line.strip():
        return None
    try:
        message = _decoder.decode(line)
    except msgspec.ValidationError as problem:
        raise RpcError(INVALID_REQUEST, f"this is no request: {problem}") from problem
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise RpcError(PARSE_ERROR, f"this line is no JSON: {problem}") from problem
    if message.method is None:
        return None
    if message.jsonrpc != "2.0" or message.id is None:
        raise RpcError(INVALID_REQUEST, 'a request has "jsonrpc": "2.0", and an id that is a text or a number')
    return Asked(None if message.id is msgspec.UNSET else message.id, message.method, message.params or {})


def reply_line(asked: Id | None, result: object) -> bytes:
    """Returns the line that answers a request."""
    return _line({"jsonrpc": "2.0", "id": asked, "result": result})


def error_line(asked: Id | None, error: RpcError) -> bytes:
    """Returns the line that refuses a request; without an id where that could not be read."""
    told = {"code": error.code, "message": error.message} | ({} if error.data is None else {"data": error.data})
    return _line({"jsonrpc": "2.0", "id": asked, "error": told})


def _line(message: dict[str, object]) -> bytes:
    return msgspec.json.encode(message) + b"\n"
