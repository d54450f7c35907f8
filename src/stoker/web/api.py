"""The control API under /api: the daemon's uses, over HTTP."""

from __future__ import annotations

from asyncio import to_thread
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from stoker.errors import StokerError
from stoker.flows.client import fault_of
from stoker.flows.control import Control
from stoker.gateway.asgi import App
from stoker.gateway.refusals import BAD_REQUEST, error_body
from stoker.records import AdoptView, AdoptWish, ServiceView, StatusView, SwitchView, Wish
from stoker.web.agents import agents_route
from stoker.web.boxes import box_offers
from stoker.web.dashboard import dashboard_offers
from stoker.web.fixes import fix_offers
from stoker.web.keys import key_offers
from stoker.web.looking import looking_offers
from stoker.web.offers import Offer
from stoker.web.openapi import JSON, describe
from stoker.web.page_files import page_routes
from stoker.web.ranks import rank_offers
from stoker.web.services import service_offers
from stoker.web.watch import watch_offers
from stoker.web.wire import WAIT_LIMIT_S, answer_json, read_body, read_number

SWITCH_ASKS = {"seen": float, "since": float, "limit_s": float}
UP = "Plan a service and let it run; with `trial` above 0, `rollback` leads to what ran before."
STATUS_OF_EXIT_CODE = {1: 500, 2: 400, 3: 409, 4: 504}


def make_app(control: Control) -> App:
    """Returns the ASGI application that offers the daemon's uses."""

    async def status(request: Request) -> Response:
        return answer_json(await control.look())

    async def up(request: Request) -> Response:
        is_trial = bool(read_number(request, "trial", 0))
        return answer_json(await control.up(await read_body(request, Wish), is_trial=is_trial))

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
        # Made when it is asked for, and away from those who are relayed: it takes 0.2 s and most of a MB.
        return answer_json(await to_thread(describe, offers))

    offers = [
        Offer("GET", "/api/openapi.json", openapi, "This description.", dict[str, Any]),
        Offer("GET", "/api/status", status, "What `stoker status` shows.", StatusView),
        Offer("POST", "/api/services", up, UP, ServiceView, takes=Wish, asks={"trial": float}),
        Offer("POST", "/api/adopt", adopt, "Take a running engine over.", AdoptView, takes=AdoptWish),
        Offer("POST", "/api/switch", switch, "Put a service in the place of others.", SwitchView, takes=Wish),
        Offer("GET", "/api/switch", await_switch, "Wait for the steps of a switch.", SwitchView, asks=SWITCH_ASKS),
        *service_offers(control),
        *key_offers(control),
        *box_offers(control),
        *rank_offers(control),
        *watch_offers(control),
        *dashboard_offers(control),
        *looking_offers(control),
        *fix_offers(control),
        Offer("POST", "/api/stop", stop, "End the daemon.", dict[str, str]),
    ]
    answers = {StokerError: _answer_fault, HTTPException: _answer_elsewhere, Exception: _answer_unforeseen}
    routes = [*(offer.route for offer in offers), agents_route(lambda: control.agents), *page_routes()]
    app = Starlette(routes=routes, exception_handlers=answers)
    app.router.redirect_slashes = False
    return app


async def _answer_fault(request: Request, problem: Exception) -> Response:
    fault = problem if isinstance(problem, StokerError) else StokerError(str(problem))
    return answer_json({"fault": fault_of(fault)}, STATUS_OF_EXIT_CODE[fault.exit_code])


async def _answer_unforeseen(request: Request, problem: Exception) -> Response:
    what = f"the daemon failed: {type(problem).__name__}: {problem}"
    return await _answer_fault(request, StokerError(what, next_step="report it with the end of daemon.log"))


async def _answer_elsewhere(request: Request, problem: Exception) -> Response:
    path, methods = request.url.path, ", ".join(sorted(_methods(request)))
    if methods:
        body = error_body(f"{path} takes {methods}.", BAD_REQUEST, "method_not_allowed")
        return Response(body, 405, {"allow": methods}, JSON)
    return Response(error_body(f"There is no {path} here.", BAD_REQUEST, "unknown_path"), 404, media_type=JSON)


def _methods(request: Request) -> set[str]:
    """Returns the methods that a path takes, which may be those of several routes."""
    routes = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
    return {method for route in routes for method in route.methods}
