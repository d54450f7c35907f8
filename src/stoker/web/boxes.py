"""The control API's routes for other boxes."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from stoker.flows.control import Control
from stoker.records.boxes import BoxesView, BoxView, BoxWish, CodeWish, JoinCode
from stoker.web.offers import Offer
from stoker.web.wire import answer_json, read_body


def box_offers(control: Control) -> list[Offer]:
    """Returns the uses."""

    async def show(request: Request) -> Response:
        return answer_json(control.boxes.view())

    async def code(request: Request) -> Response:
        wish = await read_body(request, CodeWish)
        return answer_json(control.boxes.code(may_act=wish.may_act))

    async def add(request: Request) -> Response:
        return answer_json(await control.boxes.add(await read_body(request, BoxWish)))

    async def remove(request: Request) -> Response:
        return answer_json(control.boxes.remove(request.path_params["name"]))

    return [
        Offer("GET", "/api/boxes", show, "The links to other boxes, and the doors that may come here.", BoxesView),
        Offer("POST", "/api/boxes", add, "Join another box by its code.", BoxView, takes=BoxWish),
        Offer("POST", "/api/join-codes", code, "Make a join code, good once.", JoinCode, takes=CodeWish),
        Offer("DELETE", "/api/boxes/{name}", remove, "End the link to a box, and that of its door.", BoxesView),
    ]
