"""The control API under /api: the daemon's uses, over HTTP."""

from __future__ import annotations

from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from stoker.errors import StokerError
from stoker.flows.client import fault_of
from stoker.flows.control import Control
from stoker.gateway.asgi import App
from stoker.records import AdoptView, AdoptWish, ServiceView, StatusView, SwitchView, Wish
from stoker.web.keys import key_offers
from stoker.web.offers import Offer
from stoker.web.openapi import describe
from stoker.web.services import service_offers
from stoker.web.wire import WAIT_LIMIT_S, answer_json, read_body, read_number

SWITCH_ASKS = {"seen": float, "since": float, "limit_s": float}
STATUS_OF_EXIT_CODE = {1: 500, 2: 400, 3: 409, 4: 504}


def make_app(control: Control) -> App:
    """Returns the ASGI application that offers the daemon's uses."""

    async def status(request: Request) -> Response:
        return answer_json(control.status())

    async def up(request: Request) -> Response:
        return answer_json(await control.up(await read_body(request, Wish)))

    async def adopt(request: Request) -> Response:
        return answer_json(await control.adopt(await read_body(request, AdoptWish)))

    async def switch(request: Request) -> Response:
        return answer_json(await control.switch(await read_body(request, Wish)))

    async def await_switch(request: Request) -> Response:
        limit_s = min(read_number(request, "limit_s", WAIT_LIMIT_S), WAIT_LIMIT_S)
        seen, since = int(read_number(request, "seen", 0)), read_number(request, "since", 0.0)
        return answer_json(await control.await_switch(seen, since, limit_s))

    async def stop(request: Request) -> Response:
        control.stop()
        return answer_json({"stopping": "the daemon"})

    async def openapi(request: Request) -> Response:
        return answer_json(document)

    offers = [
        Offer("GET", "/api/openapi.json", openapi, "This description.", dict[str, Any]),
        Offer("GET", "/api/status", status, "What `stoker status` shows.", StatusView),
        Offer("POST", "/api/services", up, "Plan a service and let it run.", ServiceView, takes=Wish),
        Offer("POST", "/api/adopt", adopt, "Take a running engine over.", AdoptView, takes=AdoptWish),
        Offer("POST", "/api/switch", switch, "Put a service in the place of others.", SwitchView, takes=Wish),
        Offer("GET", "/api/switch", await_switch, "Wait for the steps of a switch.", SwitchView, asks=SWITCH_ASKS),
        *service_offers(control),
        *key_offers(control),
        Offer("POST", "/api/stop", stop, "End the daemon.", dict[str, str]),
    ]
    document = describe(offers)
    nowhere = Route("/{path:path}", _nothing_here, methods=["GET", "POST", "PUT", "PATCH", "DELETE"])
    routes = [*(offer.route for offer in offers), nowhere]
    return Starlette(routes=routes, exception_handlers={StokerError: _answer_fault, Exception: _answer_unforeseen})


async def _answer_fault(request: Request, problem: Exception) -> Response:
    fault = problem if isinstance(problem, StokerError) else StokerError(str(problem))
    return answer_json({"fault": fault_of(fault)}, STATUS_OF_EXIT_CODE[fault.exit_code])


async def _answer_unforeseen(request: Request, problem: Exception) -> Response:
    what = f"the daemon failed: {type(problem).__name__}: {problem}"
    return await _answer_fault(request, StokerError(what, next_step="report it with the end of daemon.log"))


async def _nothing_here(request: Request) -> Response:
    message = f"There is no {request.url.path} here."
    return answer_json(
        {"error": {"message": message, "type": "invalid_request_error", "code": "unknown_path", "src": "stoker"}}, 404
    )
