"""The API's own description: it names every route, every route is in it, and what is answered fits it."""

from __future__ import annotations

import json
from typing import Any, cast

import httpx
import jsonschema
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from control_client import call
from home import Home
from stoker.flows.control import Control
from stoker.web.api import make_app

NOT_ASKED = (("/api/stop", "post"), ("/api/models/unload", "post"), ("/api/events", "get"))  # they end it, or do not end


@pytest.fixture(scope="module")
def document(demo: Home) -> Any:
    """The description that the daemon gives of itself."""
    status, document = call(demo, "GET", "/api/openapi.json")
    assert status == 200
    return document


def check(document: Any, method: str, path: str, status: int, answer: object) -> None:
    """Fails where an answer is not what the description promises."""
    replies = document["paths"][path][method.lower()]["responses"]
    [content] = replies.get(str(status), replies["default"])["content"].values()
    jsonschema.validate(answer, {**content["schema"], "components": document["components"]})


def test_it_is_whole(document: Any) -> None:
    assert document["openapi"].startswith("3.1")
    named = {part.split('"')[0] for part in json.dumps(document).split("#/components/schemas/")[1:]}
    assert named == set(document["components"]["schemas"])


def test_every_route_of_the_control_api_is_described(document: Any) -> None:
    app = make_app(cast(Control, None))  # nothing is asked of it
    assert isinstance(app, Starlette)
    routes = [route for route in app.routes if isinstance(route, Route) and route.path.startswith("/api/")]
    offered = {
        (route.path.replace(":path", ""), method.lower())
        for route in routes
        for method in (route.methods or set()) - {"HEAD"}
    }
    assert offered == {(path, use) for path, uses in document["paths"].items() if path.startswith("/api/") for use in uses}


def test_everything_described_is_there_and_nothing_else(demo: Home, document: Any) -> None:
    asked = [(path, use) for path in document["paths"] for use in ("get", "post", "delete")]
    for path, use in asked:
        if (path, use) in NOT_ASKED:
            continue
        real, is_control = path.replace("{name}", "nobody"), path.startswith("/api/")
        status, answer = call(demo, use.upper(), real, {}, control=is_control)
        assert (status != 405) == (use in document["paths"][path]), (use, path, status, answer)


@pytest.mark.parametrize(
    ("method", "path", "real", "body", "expected"),
    [
        ("GET", "/api/status", "/api/status", None, 200),
        ("GET", "/api/services/{name}/wait", "/api/services/demo/wait?seen=STOPPED", None, 200),
        ("GET", "/api/services/{name}/logs", "/api/services/demo/logs?lines=2", None, 200),
        ("GET", "/api/services/{name}/wait", "/api/services/demo/wait?seen=ASLEEP", None, 400),
        ("GET", "/api/services/{name}/verifications", "/api/services/demo/verifications?most=3", None, 200),
        ("POST", "/api/services/{name}/verifications", "/api/services/demo/verifications", {"service": "demo"}, 400),
        ("GET", "/api/services/{name}/plans", "/api/services/demo/plans", None, 200),
        ("GET", "/api/verifications", "/api/verifications", None, 200),
        ("GET", "/api/bench/runs", "/api/bench/runs", None, 200),
        ("GET", "/api/bench/runs/{run}", "/api/bench/runs/published:qwen3.6-27b-nvfp4-mtp", None, 200),
        ("GET", "/api/bench/runs/{run}", "/api/bench/runs/7", None, 400),
        ("GET", "/api/clients", "/api/clients", None, 200),
        ("GET", "/api/switch", "/api/switch?seen=x", None, 400),
        ("GET", "/api/switch", "/api/switch?limit_s=-1", None, 400),
        ("GET", "/api/switch", "/api/switch?seen=-1", None, 400),
        ("GET", "/api/switch", "/api/switch?limit_s=nan", None, 400),
        ("GET", "/api/services/{name}/wait", "/api/services/demo/wait?seen=STOPPED&limit_s=-0.5", None, 400),
        ("GET", "/api/services/{name}/logs", "/api/services/demo/logs?lines=-2", None, 400),
        ("POST", "/api/services", "/api/services", {"name": 1}, 400),
        ("POST", "/api/services/{name}/down", "/api/services/nobody/down", None, 400),
        ("DELETE", "/api/services/{name}", "/api/services/demo", None, 409),
        ("GET", "/v1/models", "/v1/models", None, 200),
        ("POST", "/v1/embeddings", "/v1/embeddings", {"model": "nobody"}, 404),
        ("GET", "/health", "/health", None, 200),
    ],
)
def test_what_is_answered_fits_it(
    demo: Home, document: Any, method: str, path: str, real: str, body: object, expected: int
) -> None:
    status, answer = call(demo, method, real, body, control=path.startswith("/api/"))
    assert status == expected, answer
    check(document, method, path, status, answer)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("PUT", "/api/switch", "GET, HEAD, POST"), ("TRACE", "/api/stop", "POST"), ("GET", "/api/services/a", "DELETE")],
)
def test_another_method_is_told_which_ones_a_path_takes(demo: Home, method: str, path: str, allowed: str) -> None:
    status, answer = call(demo, method, path)
    assert (status, answer["error"]["code"]) == (405, "method_not_allowed")
    assert answer["error"]["message"] == f"{path} takes {allowed}."


@pytest.mark.parametrize("path", ["/api/nowhere", "/api/status/", "/api"])
def test_a_path_that_leads_nowhere_is_said_to(demo: Home, path: str) -> None:
    status, answer = call(demo, "GET", path)
    assert (status, answer["error"]["code"]) == (404, "unknown_path")


def test_a_wrong_key_is_refused_as_described(demo: Home, document: Any) -> None:
    status, answer = call(demo, "GET", "/api/status", control=False)
    assert status == 401
    check(document, "GET", "/api/status", status, answer)


def test_no_path_of_the_control_api_is_open_without_a_key(demo: Home, document: Any) -> None:
    control = {path: known for path, known in document["paths"].items() if path.startswith("/api/")}
    uses = [(method.upper(), path) for path, known in control.items() for method in known]
    assert len(uses) > 40
    answers = {(method, path): httpx.request(method, f"{demo.daemon.url}{path}").status_code for method, path in uses}
    assert {use: status for use, status in answers.items() if status != 401} == {}


@pytest.mark.parametrize("span", ["1e160", "1e15"])
def test_a_past_before_all_clocks_is_all_the_past(demo: Home, span: str) -> None:
    status, answer = call(demo, "GET", f"/api/history?span_s={span}&service=demo")
    assert (status, answer["since"]) == (200, 0.0)
