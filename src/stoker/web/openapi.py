"""The OpenAPI description of everything behind the door, made from the offers themselves and the records they carry."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from stoker import __version__
from stoker.flows.client import Fault
from stoker.gateway.on_demand import ModelEntry, ModelList
from stoker.gateway.routes import BY_MODEL
from stoker.records import Record
from stoker.web.offers import Offer

REFERENCE = "#/components/schemas/{name}"
JSON = "application/json"
OPENMETRICS = "application/openmetrics-text"
MODEL = {"name": "model", "in": "path", "required": True, "schema": {"type": "string"}}
IN_PATH = re.compile(r"\{(\w+)\}")


class Typed(NamedTuple):
    """A place in the document where the JSON Schema of a type belongs."""

    kind: Any


class FaultReply(Record, frozen=True):
    """What the control API answers instead: what happened, why, and what to do next."""

    fault: Fault


class GatewayError(Record, frozen=True):
    """What went wrong; `src` says that Stoker refused, not an engine."""

    message: str
    type: str
    code: str | None
    param: str | None = None
    src: str = "stoker"


class ErrorReply(Record, frozen=True):
    """The gateway's refusal, in OpenAI's shape."""

    error: GatewayError


class Health(Record, frozen=True):
    """The gateway answers."""

    status: str


def describe(offers: Iterable[Offer]) -> dict[str, Any]:
    """Returns the OpenAPI 3.1 document of the control API's offers and the gateway's own paths."""
    paths = _gateway_paths()
    for offer in offers:
        paths.setdefault(offer.path, {})[offer.method.lower()] = _control_use(offer)
    schemas: dict[str, Any] = {}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Stoker", "version": __version__, "description": __doc__},
        "security": [{"key": []}],
        "paths": {path: _with_schemas(uses, schemas) for path, uses in sorted(paths.items())},
        "components": {"schemas": schemas, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }


def _gateway_paths() -> dict[str, dict[str, Any]]:
    relayed = {path: {"post": _relayed(path)} for path in BY_MODEL}
    text = {"schema": {"type": "string"}}
    said = {"description": "Prometheus's text form, or OpenMetrics.", "content": {"text/plain": text, OPENMETRICS: text}}
    metrics = _use(
        "What services, engines and machine tell; with `engine` a service's engine itself.", {"200": said}, ErrorReply
    )
    return {
        **relayed,
        "/v1/models": {"get": _use("The models, with the state of their services.", _reply(ModelList), ErrorReply)},
        "/v1/models/{model}": {"get": {**_use("One model.", _reply(ModelEntry), ErrorReply), "parameters": [MODEL]}},
        "/health": {"get": {**_use("Whether the gateway answers.", _reply(Health), ErrorReply), "security": []}},
        "/metrics": {"get": {**metrics, "parameters": [_parameter("engine", "query", str)]}},
    }


def _relayed(path: str) -> dict[str, Any]:
    named = {"type": "object", "required": ["model"], "properties": {"model": {"type": "string"}}}
    any_text: dict[str, Any] = {"schema": {}}
    said = {"200": {"description": "The engine's own.", "content": {JSON: any_text, "text/event-stream": any_text}}}
    # Whoever refuses does so in the path's own protocol: an engine in its own words, which are passed on as they are.
    refused = {"description": "Stoker's refusal or the engine's own.", "content": {JSON: any_text}}
    body = {"required": True, "content": {JSON: {"schema": named}}}
    what = f"{path} of the model that the body names; its service's engine answers."
    return {"summary": what, "requestBody": body, "responses": {**said, "default": refused}}


def _control_use(offer: Offer) -> dict[str, Any]:
    use = _use(offer.what, _reply(offer.gives, offer.kind), FaultReply, ErrorReply)
    in_path = [_parameter(name, "path", str) for name in IN_PATH.findall(offer.path)]
    parameters = [*in_path, *(_parameter(name, "query", kind) for name, kind in offer.asks.items())]
    if offer.takes is not None:
        use["requestBody"] = {"required": True, "content": {JSON: {"schema": Typed(offer.takes)}}}
    return {**use, "parameters": parameters} if parameters else use


def _use(what: str, replies: dict[str, Any], *refusals: type[Record]) -> dict[str, Any]:
    schema = {"anyOf": [Typed(kind) for kind in refusals]}
    refused = {"description": "It was refused, or it failed.", "content": {JSON: {"schema": schema}}}
    return {"summary": what, "responses": {**replies, "default": refused}}


def _reply(kind: Any, written: str = JSON) -> dict[str, Any]:
    return {"200": {"description": "Done.", "content": {written: {"schema": Typed(kind)}}}}


def _parameter(name: str, place: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "in": place, "required": place == "path", "schema": Typed(kind)}


def _with_schemas(value: Any, schemas: dict[str, Any]) -> Any:
    """Returns the same with every type written as JSON Schema; the records go to `schemas`."""
    if isinstance(value, Typed):
        [schema], components = msgspec.json.schema_components([value.kind], ref_template=REFERENCE)
        schemas.update(components)
        return schema
    if isinstance(value, dict):
        return {name: _with_schemas(item, schemas) for name, item in value.items()}
    return [_with_schemas(item, schemas) for item in value] if isinstance(value, list) else value
