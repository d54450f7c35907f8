"""The control API under /api: the daemon's uses, over HTTP."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from stoker.errors import StokerError, WrongUse
from stoker.flows.client import fault_of
from stoker.flows.control import Control
from stoker.gateway.asgi import App
from stoker.records import AdoptWish, State, Wish
from stoker.web.keys import key_routes
from stoker.web.wire import answer_json, read_body, read_number

WAIT_LIMIT_S = 30.0
LINES_LIMIT = 2000
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

    async def rollback(request: Request) -> Response:
        return answer_json(await control.rollback(request.path_params["name"]))

    async def await_switch(request: Request) -> Response:
        limit_s = min(read_number(request, "limit_s", WAIT_LIMIT_S), WAIT_LIMIT_S)
        seen, since = int(read_number(request, "seen", 0)), read_number(request, "since", 0.0)
        return answer_json(await control.await_switch(seen, since, limit_s))

    async def down(request: Request) -> Response:
        return answer_json(await control.down(request.path_params["name"]))

    async def forget(request: Request) -> Response:
        await control.forget(request.path_params["name"])
        return answer_json({"forgotten": request.path_params["name"]})

    async def wait(request: Request) -> Response:
        seen, limit_s = _state(request.query_params.get("seen", "")), read_number(request, "limit_s", WAIT_LIMIT_S)
        return answer_json(await control.wait(request.path_params["name"], seen, min(limit_s, WAIT_LIMIT_S)))

    async def logs(request: Request) -> Response:
        count = max(1, min(int(read_number(request, "lines", 100)), LINES_LIMIT))
        return answer_json(control.tail(request.path_params["name"], count))

    async def stop(request: Request) -> Response:
        control.stop()
        return answer_json({"stopping": "the daemon"})

    routes = [
        Route("/api/status", status),
        Route("/api/services", up, methods=["POST"]),
        Route("/api/services/{name}/down", down, methods=["POST"]),
        Route("/api/services/{name}/rollback", rollback, methods=["POST"]),
        Route("/api/adopt", adopt, methods=["POST"]),
        Route("/api/switch", switch, methods=["POST"]),
        Route("/api/switch", await_switch),
        Route("/api/services/{name}", forget, methods=["DELETE"]),
        Route("/api/services/{name}/wait", wait),
        Route("/api/services/{name}/logs", logs),
        Route("/api/stop", stop, methods=["POST"]),
        *key_routes(control.keys),
        Route("/{path:path}", _nothing_here, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
    ]
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


def _state(word: str) -> State:
    try:
        return State(word)
    except ValueError as problem:
        raise WrongUse(f"`{word}` is no state", next_step=f"states: {', '.join(State)}") from problem
