"""What a request's query says: a WebSocket has no body to name the model in."""

from __future__ import annotations

from urllib.parse import quote, unquote_plus


def find_models(query: bytes) -> list[str]:
    """Returns the values of each `model` in a query."""
    return find_values(query, "model")


def find_values(query: bytes, wanted: str) -> list[str]:
    """Returns the values of each key of that name in a query."""
    return [unquote_plus(value) for name, value in _pairs(query) if name == wanted]


def rename_target(target: bytes, model: str) -> bytes:
    """Returns a target with another model in its query; every other byte stays."""
    path, _, query = target.partition(b"?")
    renamed = f"model={quote(model, safe='')}".encode()
    return path + b"?" + b"&".join(renamed if _name(one) == "model" else one for one in query.split(b"&"))


def _pairs(query: bytes) -> list[tuple[str, str]]:
    return [(_name(one), one.partition(b"=")[2].decode("latin-1")) for one in query.split(b"&")]


def _name(pair: bytes) -> str:
    return unquote_plus(pair.partition(b"=")[0].decode("latin-1"))
