"""What the door says of services: the list of models, and why one that was asked for does not answer yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from stoker.errors import Refused, StokerError, WrongUse
from stoker.gateway.directory import Directory, Entry, NoReplica, NoSingleModel
from stoker.gateway.exchange import Exchange, Headers
from stoker.gateway.form import rename_model
from stoker.gateway.keyring import Caller, out_of_scope
from stoker.gateway.meter import refuse_denied
from stoker.gateway.model_value import replace_model
from stoker.gateway.query import rename_target
from stoker.gateway.refusals import BAD_REQUEST, refuse
from stoker.records import WITHOUT_ENGINE, Abilities, Record, State
from stoker.records.boxes import Replica

RETRY_FULL_S = 5
ALIAS_FILTER = (b"x-stoker-filters", b"alias")


class ModelEntry(Record, frozen=True):
    """A model that a request may name, as OpenAI's and Anthropic's clients list it, with what Stoker knows beside.

    `box` and `replicas` say where it is served once other boxes are linked; the state AWAY is that of a box not heard.
    """

    id: str
    created: int
    service: str
    state: str
    context_tokens: int | None
    alias_of: str | None
    on_demand: bool
    expected_s: float | None
    capabilities: Abilities
    object: str = "model"
    type: str = "model"
    owned_by: str = "stoker"
    box: str | None = None
    replicas: tuple[Replica, ...] = ()


class ModelList(Record, frozen=True):
    """All models, whatever state their services are in."""

    data: tuple[ModelEntry, ...]
    object: str = "list"


def render_models(entries: Iterable[Entry]) -> bytes:
    """Returns the body of `/v1/models`."""
    return msgspec.json.encode(ModelList(tuple(map(_model, entries))))


def render_model(entry: Entry) -> bytes:
    """Returns the body of `/v1/models/NAME`."""
    return msgspec.json.encode(_model(entry))


def _model(one: Entry) -> ModelEntry:
    return ModelEntry(
        one.model,
        int(one.since),
        one.service.partition("@")[0],
        "AWAY" if one.away else one.state,
        one.context_tokens,
        one.alias_of,
        one.on_demand,
        one.expected_s,
        one.abilities,
        box=one.box or None,
        replicas=one.replicas,
    )


def render_running(entries: Iterable[Entry]) -> bytes:
    """Returns the body of `/running`, in llama-swap's words: the models whose engines live."""
    running = [entry for entry in entries if _lives(entry)]
    return msgspec.json.encode({"running": [{"model": one.model, "state": one.state.lower()} for one in running]})


def _lives(entry: Entry) -> bool:
    return entry.alias_of is None and entry.state not in WITHOUT_ENGINE and not entry.away


def find_or_refuse(exchange: Exchange, directory: Directory, model: str, caller: Caller) -> Entry | None:
    """Returns who answers for a model or an alias; answers with an error and returns None where nobody does, or may."""
    try:
        entry = directory.find(model, exchange.request.headers)
    except NoReplica as problem:
        if caller.may_ask(model):
            refuse(exchange, problem.status, problem.code, problem.what, param="model")
        else:
            refuse_denied(exchange, out_of_scope(caller, model))
        return None
    except NoSingleModel as problem:
        status, kind = (400, BAD_REQUEST) if problem.ready else (503, "service_unavailable")
        refuse(exchange, status, "no_single_model", f"{problem.what}.", kind=kind, param="model")
        return None
    names = {model} if entry is None else {entry.model, entry.alias_of or entry.model}
    if not any(map(caller.may_ask, names)):
        refuse_denied(exchange, out_of_scope(caller, model))
        return None
    if entry is None:
        message = _unknown(model, [one for one in directory.entries() if caller.may_ask(one.model)])
        refuse(exchange, 404, "model_not_found", message, param="model")
    return entry


def _unknown(model: str, seen: Sequence[Entry]) -> str:
    known = ", ".join(f"`{name}`" for name in sorted(one.model for one in seen)) or "none yet"
    meant = next((one.model for one in seen if one.service == model and one.alias_of is None), None)
    hint = f" `{meant}` is the model of service `{model}`." if meant else ""
    return f"There is no model `{model}` here, and no other answers in its place.{hint} Models: {known}."


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
    if entry.away:
        message = f"`{entry.model}` is served by the box `{entry.box}`, {entry.away}. Nothing else answers in its place."
        refuse(exchange, 503, "box_away", message, kind="service_unavailable", headers=_headers(entry))
        return
    waits = f" It waits for {entry.waits_for}." if entry.waits_for else ""
    message = f"`{entry.model}` is not ready: {entry.state}, {entry.why}.{waits} Nothing else answers in its place."
    kind = BAD_REQUEST if entry.state is State.FAILED and not entry.on_demand else "service_unavailable"
    refuse(exchange, 503, f"service_{entry.state.lower()}", message, kind=kind, headers=_headers(entry))


def _headers(entry: Entry) -> Headers:
    return [(b"retry-after", str(entry.retry_after_s).encode()), *name_service(entry)]


def name_service(entry: Entry) -> Headers:
    """Returns what is known of who would answer before an engine is asked."""
    said = (
        ("service", entry.service.partition("@")[0]),
        ("box", entry.box or None),
        ("model", entry.alias_of or entry.model),
        ("revision", entry.revision),
        ("plan", entry.plan_id),
    )
    return [(f"x-stoker-{what}".encode(), value.encode()) for what, value in said if value is not None]


def refuse_full(exchange: Exchange, entry: Entry, why: str) -> None:
    """Answers 429 to one more than may wait for a service."""
    headers = _headers(entry._replace(retry_after_s=max(RETRY_FULL_S, entry.retry_after_s)))
    message = f"`{entry.model}` is busy: {why}, and no more may wait (waiting in stoker.toml)."
    refuse(exchange, 429, "queue_full", message, kind="rate_limit_error", headers=headers)


def name_real_model(exchange: Exchange, entry: Entry) -> Headers | None:
    """Puts the real model's name into a request that says an alias; returns the headers that tell of it.

    Answers 400 and returns None for a body in which its place cannot be told.
    """
    if entry.alias_of is None:
        return []
    request = exchange.request
    if request.is_websocket:
        exchange.request = request._replace(target=rename_target(request.target, entry.alias_of))
        return [ALIAS_FILTER]
    try:
        if request.is_json:
            body = replace_model(bytes(request.body), entry.alias_of)
        else:
            body = rename_model(request.header(b"content-type") or b"", bytes(request.body), entry.alias_of)
    except WrongUse as problem:
        refuse(exchange, 400, "alias_unclear", f"{problem.what}; {problem.next_step}.", param="model")
        return None
    exchange.request = request._replace(body=body)
    return [ALIAS_FILTER]
