"""What another box's door asks of this one: exactly one service by one plan, or a word that no engine has seen it."""

from __future__ import annotations

from stoker.gateway.asked import Asked, read_asked
from stoker.gateway.directory import Directory, Entry
from stoker.gateway.exchange import Exchange
from stoker.gateway.refusals import refuse
from stoker.gateway.relay import UNSERVED
from stoker.gateway.routes import BY_MODEL

PLAN_SHOWN = 40


def read_from_door(exchange: Exchange, directory: Directory, service: str, plan_id: str) -> tuple[Entry, Asked] | None:
    """Returns the service that is READY by that very plan, and what is asked of it; answers and returns None otherwise."""
    entry = directory.find_service(service)
    if entry is None or entry.box or entry.endpoint is None or entry.endpoint.plan_id != plan_id:
        now = "it is not here" if entry is None else f"it is {entry.state}, or runs by another plan"
        refuse_door(exchange, f"This box does not serve `{service}` by the plan {plan_id[:PLAN_SHOWN]}: {now}.")
        return None
    asked = read_asked(exchange) if exchange.request.path in BY_MODEL else Asked("", False, 0)
    if asked is None:
        return None
    if asked.model not in ("", entry.model):  # what is asked for by name is never answered by another
        refuse(exchange, 404, "model_not_found", f"The service `{service}` does not serve `{asked.model}`.", param="model")
        return None
    return entry, asked


def refuse_door(exchange: Exchange, message: str) -> None:
    """Tells another box's door that no engine has seen its request, so that it may ask another replica."""
    refuse(exchange, UNSERVED, "replica_changed", message, kind="service_unavailable", headers=[(b"retry-after", b"1")])


def refuse_unreached(exchange: Exchange, why: str) -> bool:
    """Tells it the same of an engine to which nothing was sent."""
    refuse_door(exchange, f"The engine {why}.")
    return True
