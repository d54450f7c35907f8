"""Web pages of other sites: refused unless their origin is named, and then let in wherever their keys are."""

from __future__ import annotations

import pytest

from door_stage import Engine, Stage, json_answer, run
from gateway_client import LONG_S, Answer
from stoker.config import GatewayConfig

PAGE = b"https://app.example"
ALLOWED = GatewayConfig(port=0, engine_silence_limit_s=LONG_S, cors_origins=("https://App.example", "http://localhost:3000"))
PREFLIGHT = (b"access-control-request-method: POST", b"access-control-request-headers: authorization,content-type,x-a")


def ask(method: bytes, target: bytes, *headers: bytes, config: GatewayConfig | None = None, key: bytes = b"key") -> Answer:
    answers: list[Answer] = []

    async def story(stage: Stage) -> None:
        body = b'{"model": "m"}' if method == b"POST" else b""
        client = await stage.request(method, target, *headers, body=body, key=key)
        answers.append(await client.read_answer(bodiless=method in (b"HEAD", b"OPTIONS") and not_refused(headers, config)))

    engine = run(Engine(json_answer(b"{}", b"access-control-allow-origin: *")), story, config=config)
    assert len(engine.asked) == (answers[0].status == 200 and method == b"POST")
    return answers[0]


def not_refused(headers: tuple[bytes, ...], config: GatewayConfig | None) -> bool:
    return config is not None or not any(line.startswith(b"origin") for line in headers)


@pytest.mark.parametrize("method", [b"OPTIONS", b"POST", b"GET"])
@pytest.mark.parametrize(
    "path", [b"/v1/chat/completions", b"/v1/models", b"/service/chat/x", b"/health", b"/metrics", b"/api/status"]
)
def test_no_page_of_another_site_may_ask_by_default(method: bytes, path: bytes) -> None:
    answer = ask(method, path, b"origin: " + PAGE, *PREFLIGHT)
    assert (answer.status, answer.code) == (403, "foreign_origin")
    assert not any(name.startswith("access-control") for name in answer.headers)


def test_an_allowed_page_asks_before_and_then_reads_the_answer() -> None:
    asked = ask(b"OPTIONS", b"/v1/chat/completions", b"origin: " + PAGE, *PREFLIGHT, config=ALLOWED, key=b"")
    assert asked.status == 204
    assert asked.headers["access-control-allow-origin"] == PAGE.decode()
    assert "POST" in asked.headers["access-control-allow-methods"]
    assert asked.headers["access-control-allow-headers"] == "authorization,content-type,x-a"
    answer = ask(b"POST", b"/v1/chat/completions", b"origin: " + PAGE, config=ALLOWED)
    assert answer.headers["access-control-allow-origin"] == PAGE.decode()
    assert answer.headers["vary"] == "origin"
    assert {"x-request-id", "x-stoker-model", "retry-after"} <= set(
        answer.headers["access-control-expose-headers"].split(", ")
    )


@pytest.mark.parametrize(("path", "key", "status"), [(b"/v1/models", b"wrong", 401), (b"/v1/none", b"key", 404)])
def test_an_allowed_page_can_read_why_it_was_refused(path: bytes, key: bytes, status: int) -> None:
    answer = ask(b"GET", path, b"origin: " + PAGE, config=ALLOWED, key=key)
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (status, PAGE.decode())


@pytest.mark.parametrize(
    "origin",
    [b"null", b"https://evil.example", b"http://app.example", b"https://app.example.evil", b"https://app.example:444", b"*"],
)
def test_an_origin_that_is_not_named_is_refused_beside_others(origin: bytes) -> None:
    assert ask(b"GET", b"/v1/models", b"origin: " + origin, config=ALLOWED).code == "foreign_origin"


def test_a_page_of_this_host_on_another_port_can_be_allowed() -> None:
    answer = ask(b"OPTIONS", b"/v1/models", b"origin: http://localhost:3000", *PREFLIGHT, config=ALLOWED)
    assert answer.headers["access-control-allow-origin"] == "http://localhost:3000"
    other = ask(b"OPTIONS", b"/v1/models", b"origin: http://localhost:3001", *PREFLIGHT, config=ALLOWED)
    assert "access-control-allow-origin" not in other.headers


@pytest.mark.parametrize(
    ("path", "takes_put"), [(b"/v1/models", False), (b"/service/chat/x", True), (b"/upstream/m/x", True)]
)
def test_options_tells_what_may_be_asked_and_needs_no_key(path: bytes, takes_put: bool) -> None:
    answer = ask(b"OPTIONS", path, key=b"")
    assert answer.status == 204
    assert ("PUT" in answer.headers["allow"].split(", ")) is takes_put
    assert not any(name.startswith("access-control") for name in answer.headers)


@pytest.mark.parametrize(
    ("path", "status"), [(b"/v1/models", 200), (b"/v1/models/m", 200), (b"/health", 200), (b"/running", 200)]
)
def test_head_is_answered_like_get_without_a_body(path: bytes, status: int) -> None:
    head, get = ask(b"HEAD", path), ask(b"GET", path)
    assert (head.status, head.headers["content-length"]) == (status, str(len(get.body)))


def test_the_engines_own_word_on_other_sites_is_not_passed_on() -> None:
    assert "access-control-allow-origin" not in ask(b"POST", b"/v1/chat/completions").headers
