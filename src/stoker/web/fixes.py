"""The control API's uses of fixes: what would mend a service, yes to it, and what came of that."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from stoker.flows.control import Control
from stoker.records import SwitchView
from stoker.records.fixing import FixAsked, FixTried, FixView
from stoker.web.offers import Offer
from stoker.web.services import NAMED
from stoker.web.wire import WAIT_LIMIT_S, answer_json, read_body, read_number

BEGIN = "Try a fix that was shown; it is written down once the service is READY."
LAST = "What came of the last fix that was begun; waits for the one begun at `since`."
TRIED: Any = FixTried | None
ASKS = {"since": float, "limit_s": float}


def fix_offers(control: Control) -> list[Offer]:
    """Returns the uses."""

    async def propose(request: Request) -> Response:
        return answer_json(await control.fixes.propose(request.path_params["name"]))

    async def begin(request: Request) -> Response:
        asked = await read_body(request, FixAsked)
        return answer_json(await control.fixes.begin(request.path_params["name"], asked.digest))

    async def last(request: Request) -> Response:
        since, limit_s = read_number(request, "since", 0.0), read_number(request, "limit_s", 0.0)
        return answer_json(await control.fixes.await_end(since, min(limit_s, WAIT_LIMIT_S)))

    return [
        Offer("GET", f"{NAMED}/fix", propose, "What would mend a service's last failure.", FixView),
        Offer("POST", f"{NAMED}/fix", begin, BEGIN, SwitchView, takes=FixAsked),
        Offer(
            "GET",
            "/api/fix",
            last,
            LAST,
            TRIED,
            asks=ASKS,
        ),
    ]
