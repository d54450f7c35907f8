"""What a request asks for, read from its body without taking the whole of it apart."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from stoker.gateway.exchange import Exchange
from stoker.gateway.form import find_model
from stoker.gateway.query import find_models
from stoker.gateway.refusals import refuse

PLAIN = frozenset({b"", b"identity"})
CODING_SHOWN = 40
BYTES_PER_TOKEN = 4  # a rough estimate, for limits on what is in flight; an engine counts exactly

PICTURE_TOKENS, IN_LETTERS = 1000, b";base64,"
# Clients ask for the most that a model may write, and get a page. SGLang counts no more either when it lets requests in.
MOST_WRITTEN_TOKENS = 4096


class Asked(NamedTuple):
    """The model, whether the reply is to be a stream, and about how many tokens are read and written at most.

    `model` is empty where the path names a service instead; who in it answers is told by nobody.
    """

    model: str
    is_stream: bool
    tokens: int


class _Body(msgspec.Struct):
    model: str
    stream: object = None
    max_tokens: object = None
    max_completion_tokens: object = None
    max_output_tokens: object = None


def read_asked(exchange: Exchange) -> Asked | None:
    """Returns what a body asks for; answers with an error and returns None where it names no model, or none can be read."""
    codings = [value for name, value in exchange.request.headers if name == b"content-encoding"]
    coding = b", ".join(codings)
    if not PLAIN.issuperset(coding.lower().replace(b" ", b"").split(b",")):
        _refuse_coded(exchange, coding)
        return None
    return _read_json(exchange) if exchange.request.is_json else _read_form(exchange)


def read_realtime(exchange: Exchange) -> Asked | None:
    """Returns what a WebSocket's query asks for; answers with an error and returns None where that is not one model."""
    request = exchange.request
    models = find_models(request.query)
    if not request.is_websocket:
        message = f"{request.path} is a WebSocket: GET with `Upgrade: websocket`."
        refuse(exchange, 426, "upgrade_required", message, headers=[(b"upgrade", b"websocket")])
    elif len(models) != 1 or not models[0]:
        refuse(exchange, 400, "invalid_model", f"Write {request.path}?model=NAME, with one name.", param="model")
    else:
        return Asked(models[0], False, 0)
    return None


def _refuse_coded(exchange: Exchange, coding: bytes) -> None:
    said = coding[:CODING_SHOWN].decode("latin-1")
    message = (
        f"The body has `Content-Encoding: {said}`, and the model is read from it as it is: send it uncompressed, or to "
        "/service/NAME/..., where the path says who answers."
    )
    # Which it would take is told by this header (RFC 9110, 15.5.16): none but the body itself.
    refuse(exchange, 415, "compressed_body", message, headers=[(b"accept-encoding", b"identity")])


def _read_json(exchange: Exchange) -> Asked | None:
    body = exchange.request.body
    try:
        found = msgspec.json.decode(body, type=_Body)
    except msgspec.ValidationError as problem:
        message = f"The body must be a JSON object with a text `model`: {problem}."
        refuse(exchange, 400, "invalid_model", message, param="model")
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        refuse(exchange, 400, "invalid_json", f"The body is not valid JSON: {problem}.")
    except RecursionError:
        refuse(exchange, 400, "nested_too_deeply", "The body's JSON is nested too deeply.")
    else:
        limits = (found.max_completion_tokens, found.max_tokens, found.max_output_tokens)
        written = next((limit for limit in limits if isinstance(limit, int) and limit > 0), 0)
        return Asked(found.model, found.stream is True, _prompt_tokens(body) + min(written, MOST_WRITTEN_TOKENS))
    return None


def _prompt_tokens(body: bytes | bytearray) -> int:
    """Returns about how many tokens a body has; a picture or sound in it counts as so many, whatever its letters are."""
    text_bytes, count, at = len(body), 0, body.find(IN_LETTERS)
    while at >= 0 and (end := body.find(b'"', at)) >= 0:
        text_bytes, count, at = text_bytes - (end - at), count + 1, body.find(IN_LETTERS, end)
    return text_bytes // BYTES_PER_TOKEN + count * PICTURE_TOKENS


def _read_form(exchange: Exchange) -> Asked | None:
    request = exchange.request
    field = find_model(request.header(b"content-type") or b"", bytes(request.body))
    if field is None:
        refuse(exchange, 400, "invalid_model", "The form has no field `model`.", param="model")
        return None
    return Asked(field.model, False, 0)
