"""The control API's routes for heads on other boxes, which start and keep this box's rank of a model."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from stoker.errors import Refused
from stoker.flows.control import Control
from stoker.gateway.link_door import LINK
from stoker.records.rank_views import RankFacts, RankRenew, RankStart, RankView
from stoker.web.offers import Offer
from stoker.web.wire import answer_json, read_body

NAMED = "/api/ranks/{name}"


def rank_offers(control: Control) -> list[Offer]:
    """Returns the uses."""

    async def check(request: Request) -> Response:
        _read_head(request)
        return answer_json(await control.ranks.check(request.path_params["name"]))

    async def start(request: Request) -> Response:
        wish = await read_body(request, RankStart)
        if wish.ask.service != request.path_params["name"]:
            raise Refused("a rank of one service was asked for in the name of another")
        return answer_json(await control.ranks.start(wish, _read_head(request)))

    async def renew(request: Request) -> Response:
        head, wish = _read_head(request), await read_body(request, RankRenew)
        return answer_json(await control.ranks.renew(request.path_params["name"], wish, head))

    async def stop(request: Request) -> Response:
        return answer_json(await control.ranks.stop(request.path_params["name"], _read_head(request)))

    return [
        Offer("POST", f"{NAMED}/check", check, "What this box has for its rank of a model.", RankFacts),
        Offer("POST", f"{NAMED}/start", start, "Start this box's rank of a model.", RankView, takes=RankStart),
        Offer("POST", f"{NAMED}/renew", renew, "Say that a rank is still wanted.", RankView, takes=RankRenew),
        Offer("POST", f"{NAMED}/stop", stop, "End this box's rank of a model.", RankView),
    ]


def _read_head(request: Request) -> str:
    """Returns the link over which the head asks."""
    head = request.headers.get(LINK.decode())
    if not head:
        raise Refused(
            "ranks are started over the link of their head alone",
            next_step="`stoker up SERVICE` on the first of the service's boxes",
        )
    return head
