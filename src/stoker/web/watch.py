"""The control API's uses of watching."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from stoker.flows.control import Control
from stoker.records.watching import Silence, WatchView
from stoker.web.offers import Offer
from stoker.web.wire import answer_json, read_body


def watch_offers(control: Control) -> list[Offer]:
    """Returns the uses."""

    async def view(request: Request) -> Response:
        return answer_json(control.watching.view())

    async def silence(request: Request) -> Response:
        return answer_json(await control.watching.silence(await read_body(request, Silence)))

    return [
        Offer("GET", "/api/watch", view, "What watching sees now, and the alerts.", WatchView),
        Offer("POST", "/api/silences", silence, "Keep quiet about some alerts.", tuple[Silence, ...], takes=Silence),
    ]
