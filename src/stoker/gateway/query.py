"""The model in a request's query, where a WebSocket has no body to name it in."""

from __future__ import annotations

from urllib.parse import quote, unquote_plus


def find_models(query: bytes) -> list[str]:
    """Returns the values of each `model` in a query."""
    return [unquote_plus(value) for name, value in _pairs(query) if name == "model"]


def rename_target(target: bytes, model: str) -> bytes:
    """Returns a target with another model in its query; every other byte stays."""
    path, _, query = target.partition(b"?")
    renamed = f"model={quote(model, safe='')}".encode()
    return path + b"?" + b"&".join(renamed if _name(one) == "model" else one for one in query.split(b"&"))


def _pairs(query: bytes) -> list[tuple[str, str]]:
    return [(_name(one), one.partition(b"=")[2].decode("latin-1")) for one in query.split(b"&")]


def _name(pair: bytes) -> str:
    return unquote_plus(pair.partition(b"=")[0].decode("latin-1"))
