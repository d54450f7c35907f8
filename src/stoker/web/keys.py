"""The control API's routes for keys and usage."""

from __future__ import annotations

from typing import get_args

from starlette.requests import Request
from starlette.responses import Response

from stoker.errors import WrongUse
from stoker.flows.control import Control
from stoker.records import KeyView, KeyWish, NewKey, RevokedKey, UsageBy, UsageView
from stoker.web.offers import Offer
from stoker.web.wire import answer_json, read_body, read_number


def key_offers(control: Control) -> list[Offer]:
    """Returns the uses."""

    async def add(request: Request) -> Response:
        return answer_json(await control.keys.add(await read_body(request, KeyWish)))

    async def listed(request: Request) -> Response:
        return answer_json(await control.keys.list())

    async def revoke(request: Request) -> Response:
        return answer_json(await control.keys.revoke(request.path_params["name"]))

    async def usage(request: Request) -> Response:
        since = read_number(request, "since", 0.0)
        return answer_json(await control.keys.usage(_by(request.query_params.get("by", "key")), since or None))

    return [
        Offer("POST", "/api/keys", add, "Make a named key; it is shown this once.", NewKey, takes=KeyWish),
        Offer("GET", "/api/keys", listed, "The named keys.", tuple[KeyView, ...]),
        Offer("DELETE", "/api/keys/{name}", revoke, "Revoke a key.", RevokedKey),
        Offer("GET", "/api/usage", usage, "What was used.", UsageView, asks={"by": UsageBy, "since": float}),
    ]


def _by(word: str) -> UsageBy:
    known: tuple[UsageBy, ...] = get_args(UsageBy)
    for by in known:
        if word == by:
            return by
    raise WrongUse(f"`{word}` is nothing to sum up by", next_step=f"one of: {', '.join(known)}")
