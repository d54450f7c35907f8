"""The control API's routes for keys and usage."""

from __future__ import annotations

from typing import get_args

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from stoker.errors import WrongUse
from stoker.flows.key_desk import KeyDesk
from stoker.records import KeyWish, UsageBy
from stoker.web.wire import answer_json, read_body, read_number


def key_routes(desk: KeyDesk) -> list[Route]:
    """Returns the routes."""

    async def add(request: Request) -> Response:
        return answer_json(await desk.add(await read_body(request, KeyWish)))

    async def listed(request: Request) -> Response:
        return answer_json(await desk.list())

    async def revoke(request: Request) -> Response:
        return answer_json(await desk.revoke(request.path_params["name"]))

    async def usage(request: Request) -> Response:
        since = read_number(request, "since", 0.0)
        return answer_json(await desk.usage(_by(request.query_params.get("by", "key")), since or None))

    return [
        Route("/api/keys", add, methods=["POST"]),
        Route("/api/keys", listed),
        Route("/api/keys/{name}", revoke, methods=["DELETE"]),
        Route("/api/usage", usage),
    ]


def _by(word: str) -> UsageBy:
    known: tuple[UsageBy, ...] = get_args(UsageBy)
    for by in known:
        if word == by:
            return by
    raise WrongUse(f"`{word}` is nothing to sum up by", next_step=f"one of: {', '.join(known)}")
