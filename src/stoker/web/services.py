"""The control API's uses of one service, or of all of a model."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from stoker.errors import WrongUse
from stoker.flows.control import Control
from stoker.flows.logs import fold_noise
from stoker.records import KeptVerification, ServiceView, State, SwitchView
from stoker.records.diagnosis import LogSearch, LogTail
from stoker.store.last_rows import KEPT
from stoker.web.offers import Offer
from stoker.web.wire import WAIT_LIMIT_S, answer_json, read_body, read_number

LINES_LIMIT = 2000
WAIT_ASKS = {"seen": State, "limit_s": float}
NAMED = "/api/services/{name}"
VERIFIED = f"{NAMED}/verifications"
SEARCH = "The last lines of all that is kept of an engine's log that hold a text."
LAST = "What its gate and `stoker verify` found out, the last first."


def service_offers(control: Control) -> list[Offer]:
    """Returns the uses."""

    async def rollback(request: Request) -> Response:
        return answer_json(await control.rollback(request.path_params["name"]))

    async def down(request: Request) -> Response:
        return answer_json(await control.down(request.path_params["name"]))

    async def forget(request: Request) -> Response:
        await control.forget(request.path_params["name"])
        return answer_json({"forgotten": request.path_params["name"]})

    async def wait(request: Request) -> Response:
        seen, limit_s = _state(request.query_params.get("seen", "")), read_number(request, "limit_s", WAIT_LIMIT_S)
        return answer_json(await control.wait(request.path_params["name"], seen, min(limit_s, WAIT_LIMIT_S)))

    async def unload(request: Request) -> Response:
        return answer_json(await control.unload(request.path_params.get("model")))

    async def verifications(request: Request) -> Response:
        most = max(1, min(int(read_number(request, "most", 1)), KEPT))
        return answer_json(control.verifications(request.path_params["name"], most))

    async def keep_verification(request: Request) -> Response:
        kept = await read_body(request, KeptVerification)
        return answer_json(control.keep_verification(request.path_params["name"], kept))

    return [
        Offer("POST", f"{NAMED}/down", down, "Let a service stop.", ServiceView),
        Offer("POST", f"{NAMED}/rollback", rollback, "Go back to a service's former plan.", SwitchView),
        Offer("DELETE", NAMED, forget, "Forget a service that rests.", dict[str, str]),
        Offer("GET", f"{NAMED}/wait", wait, "Wait until a service is in another state.", ServiceView, asks=WAIT_ASKS),
        *_log_offers(control),
        Offer("GET", VERIFIED, verifications, LAST, list[KeptVerification], asks={"most": float}),
        Offer("POST", VERIFIED, keep_verification, "Keep what was found out.", KeptVerification, takes=KeptVerification),
        Offer("POST", "/api/models/unload", unload, "Let all services stop, in llama-swap's words.", list[ServiceView]),
        Offer("POST", "/api/models/unload/{model}", unload, "Let the services of a model stop.", list[ServiceView]),
    ]


def _log_offers(control: Control) -> list[Offer]:
    """What an engine's log is read by."""

    async def logs(request: Request) -> Response:
        count = max(1, min(int(read_number(request, "lines", 100)), LINES_LIMIT))
        return answer_json(control.tail(request.path_params["name"], count))

    async def tail(request: Request) -> Response:
        count = max(1, min(int(read_number(request, "lines", 100)), LINES_LIMIT))
        return answer_json(fold_noise(control.tail(request.path_params["name"], LINES_LIMIT), count))

    async def search(request: Request) -> Response:
        most = max(1, min(int(read_number(request, "most", 500)), LINES_LIMIT))
        text, folds = request.query_params.get("text", ""), bool(read_number(request, "fold", 0))
        return answer_json(await control.looking.search(request.path_params["name"], text, most, folds))

    return [
        Offer("GET", f"{NAMED}/logs", logs, "The last lines of an engine's log.", list[str], asks={"lines": float}),
        Offer("GET", f"{NAMED}/logs/tail", tail, "The same without noise.", LogTail, asks={"lines": float}),
        Offer("GET", f"{NAMED}/logs/search", search, SEARCH, LogSearch, asks={"text": str, "most": float, "fold": float}),
    ]


def _state(word: str) -> State:
    try:
        return State(word)
    except ValueError as problem:
        raise WrongUse(f"`{word}` is no state", next_step=f"states: {', '.join(State)}") from problem
