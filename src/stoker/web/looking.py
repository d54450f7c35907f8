"""The control API's uses behind the dashboard's views of plans, verifications, benchmarks and clients."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from stoker.flows.control import Control
from stoker.records import BenchRunLine
from stoker.records.looking import (
    ClientsView,
    MatrixView,
    PlansView,
    ProveWish,
    ProvingView,
    RunsCompared,
    RunShown,
)
from stoker.web.offers import Offer
from stoker.web.services import NAMED
from stoker.web.wire import answer_json, read_body

LAST = "last"
PLANS = "A service's plan beside the one that `stoker.toml` would give now, and the one that `rollback` leads to."
MATRIX = "What every probe found the last time that it was asked of every service."
COMPARE = "How run `b` differs from run `a`, as `stoker bench compare` says it."
CLIENTS = "What makes each client ask this gateway for a model; the key is not in it."


def looking_offers(control: Control) -> list[Offer]:
    """Returns the uses."""

    async def plans(request: Request) -> Response:
        return answer_json(await control.plans(request.path_params["name"]))

    async def matrix(request: Request) -> Response:
        return answer_json(await control.matrix())

    async def prove(request: Request) -> Response:
        return answer_json(control.prove(request.path_params["name"], await read_body(request, ProveWish)))

    async def stop(request: Request) -> Response:
        return answer_json(control.proving.stop())

    async def runs(request: Request) -> Response:
        return answer_json(await control.looking.bench_runs())

    async def run(request: Request) -> Response:
        return answer_json(await control.looking.bench_run(request.path_params["run"]))

    async def compare(request: Request) -> Response:
        a, b = (request.query_params.get(name) or LAST for name in ("a", "b"))
        return answer_json(await control.looking.comparison(a, b))

    async def clients(request: Request) -> Response:
        return answer_json(await control.looking.clients(request.query_params.get("model") or None))

    return [
        Offer("GET", f"{NAMED}/plans", plans, PLANS, PlansView),
        Offer("POST", f"{NAMED}/verify", prove, "Begin to verify a service.", ProvingView, takes=ProveWish),
        Offer("GET", "/api/verifications", matrix, MATRIX, MatrixView),
        Offer("DELETE", "/api/verifications", stop, "End the verification that is under way.", ProvingView | None),
        Offer("GET", "/api/bench/runs", runs, "The kept runs of benchmarks, the last first.", list[BenchRunLine]),
        Offer("GET", "/api/bench/runs/{run}", run, "A run with its table and charts.", RunShown),
        Offer("GET", "/api/bench/compare", compare, COMPARE, RunsCompared, asks={"a": str, "b": str}),
        Offer("GET", "/api/clients", clients, CLIENTS, ClientsView, asks={"model": str}),
    ]
