"""What the door says of services: the list of models, and why one that was asked for does not answer yet."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from stoker.errors import Refused, StokerError, WrongUse
from stoker.gateway.directory import Directory, Entry, NoSingleModel
from stoker.gateway.exchange import Exchange, Headers
from stoker.gateway.model_value import replace_model
from stoker.gateway.refusals import BAD_REQUEST, refuse
from stoker.records import State

ALIAS_FILTER = (b"x-stoker-filters", b"alias")


def render_models(entries: Iterable[Entry]) -> bytes:
    """Returns the body of `/v1/models`."""
    return msgspec.json.encode({"object": "list", "data": [_model(entry) for entry in entries]})


def _model(entry: Entry) -> dict[str, object]:
    return {
        "id": entry.model, "object": "model", "created": int(entry.since), "owned_by": "stoker",
        "service": entry.service, "state": entry.state, "context_tokens": entry.context_tokens,
        "alias_of": entry.alias_of, "on_demand": entry.on_demand, "expected_s": entry.expected_s,
    }  # fmt: skip


def find_or_refuse(exchange: Exchange, directory: Directory, model: str) -> Entry | None:
    """Returns who answers for a model or an alias; answers with an error and returns None where nobody does."""
    try:
        entry = directory.find(model)
    except NoSingleModel as problem:
        status, kind = (400, BAD_REQUEST) if problem.ready else (503, "service_unavailable")
        refuse(exchange, status, "no_single_model", f"{problem.what}.", kind=kind, param="model")
        return None
    if entry is None:
        known = ", ".join(sorted(f"`{one.model}`" for one in directory.entries())) or "none yet"
        message = f"There is no model `{model}` here, and no other answers in its place. Models: {known}."
        refuse(exchange, 404, "model_not_found", message, param="model")
    return entry


def refuse_unready(exchange: Exchange, directory: Directory, entry: Entry) -> None:
    """Answers 503 for a service that is not READY; one that requests may start is started, and the answer says for when."""
    if not entry.on_demand:
        _refuse(exchange, entry)
        return
    try:
        directory.ask(entry.service)
    except StokerError as problem:
        refuse_unstarted(exchange, entry, problem)
    else:
        _refuse(exchange, directory.find(entry.model) or entry)


def refuse_unstarted(exchange: Exchange, entry: Entry, problem: StokerError) -> None:
    """Answers 503 for a service that does not come up, or may not now."""
    why = f" ({problem.why})" if problem.why else ""
    message = f"`{entry.model}` is not started: {problem.what}{why}. Nothing else answers in its place."
    code = "start_refused" if isinstance(problem, Refused) else "start_failed"
    refuse(exchange, 503, code, message, kind="service_unavailable", headers=_headers(entry))


def _refuse(exchange: Exchange, entry: Entry) -> None:
    waits = f" It waits for {entry.waits_for}." if entry.waits_for else ""
    message = f"`{entry.model}` is not ready: {entry.state}, {entry.why}.{waits} Nothing else answers in its place."
    kind = BAD_REQUEST if entry.state is State.FAILED and not entry.on_demand else "service_unavailable"
    refuse(exchange, 503, f"service_{entry.state.lower()}", message, kind=kind, headers=_headers(entry))


def _headers(entry: Entry) -> Headers:
    return [(b"retry-after", str(entry.retry_after_s).encode()), (b"x-stoker-service", entry.service.encode())]


def name_real_model(exchange: Exchange, entry: Entry) -> Headers | None:
    """Puts the real model's name into a request that says an alias; returns the headers that tell of it.

    Answers 400 and returns None for a body in which its place cannot be told.
    """
    if entry.alias_of is None:
        return []
    try:
        body = replace_model(exchange.request.body, entry.alias_of)
    except WrongUse as problem:
        refuse(exchange, 400, "alias_unclear", f"{problem.what}; {problem.next_step}.", param="model")
        return None
    exchange.request = exchange.request._replace(body=body)
    return [ALIAS_FILTER]
