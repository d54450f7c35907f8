"""Paths of a service's own, and llama-swap's: whose they are, what of them reaches the engine, and who may ask."""

from __future__ import annotations

import asyncio
import http.client
import json
from typing import Any

import pytest

from door_stage import Engine, Stage, json_answer, run
from gateway_client import Answer
from home import Home
from stoker.gateway.routes import SERVICE, UPSTREAM, read_within
from stoker.records import State

ODD = "Qwen/Größe 1"


def send(home: Home, target: str, key: str, method: str = "GET") -> tuple[int, Any]:
    """Sends one request to the real daemon; returns (status, body as JSON)."""
    connection = http.client.HTTPConnection(home.daemon.url.removeprefix("http://"), timeout=30)
    connection.request(method, target, headers={"authorization": f"Bearer {key}"})
    reply = connection.getresponse()
    raw = reply.read()
    connection.close()
    return reply.status, json.loads(raw)


def ask(stage_engine: Engine, method: bytes, target: bytes, model: str = "m", body: bytes = b"") -> Answer:
    answers: list[Answer] = []

    async def story(stage: Stage) -> None:
        client = await stage.request(method, target, body=body)
        answers.append(await client.read_answer(bodiless=method == b"HEAD"))

    run(stage_engine, story, model=model)
    return answers[0]


@pytest.mark.parametrize("method", [b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"PROPFIND"])
def test_any_method_reaches_a_services_own_path(method: bytes) -> None:
    engine = Engine(json_answer(b""))
    answer = ask(engine, method, b"/service/chat/slots/1", body=b"hello" if method == b"PUT" else b"")
    assert (answer.status, answer.headers["x-stoker-service"]) == (200, "chat")
    (head, body) = engine.asked[0]
    assert head.startswith(method + b" /slots/1 HTTP/1.1\r\n")
    assert body == (b"hello" if method == b"PUT" else b"")


@pytest.mark.parametrize(
    "rest",
    [
        b"/", b"/a?", b"/?x=/a/b?c", b"/a?q=a%20b+c&r=%zz&&=;", b"/a%2fb/%2e%2e/../c//d/./", b"/%61%00%ff",
        b"//evil.example/x",
        b"/a%3Fb%23c", b"/service/chat/x", b"/a:b@c;d=e,f'(g)*!~",
    ],
)  # fmt: skip
@pytest.mark.parametrize("prefix", [b"/service/chat", b"/service/%63hat", b"/upstream/m"])
def test_what_follows_the_name_reaches_the_engine_byte_for_byte(prefix: bytes, rest: bytes) -> None:
    engine = Engine(json_answer(b"{}"))
    assert ask(engine, b"GET", prefix + rest).status == 200
    assert engine.asked[0][0].startswith(b"GET " + rest + b" HTTP/1.1\r\n")


@pytest.mark.parametrize(
    "target",
    [
        b"/service/", b"/service//x", b"/service/chat", b"/service/chat?x=/y", b"/service/../v1/models",
        b"/service/m%2Fx", b"/service%2Fchat/x", b"/service%2fchat%2fx", b"/%73ervice/chat/x", b"/service/chat%2Fx/y",
        b"/service/other/x", b"/upstream/other/x", b"/upstream/m", b"/upstream/%6D%2F/x", b"/upstream%2Fm/x",
        b"/upstream/" + b"a/" * 2000,
    ],
)  # fmt: skip
def test_a_path_that_names_no_service_reaches_no_engine(target: bytes) -> None:
    engine = Engine(json_answer(b"{}"))
    assert ask(engine, b"GET", target).status == 404
    assert engine.asked == []


@pytest.mark.parametrize("name", [b"Qwen/Gr%C3%B6%C3%9Fe%201", b"Qwen%2FGr%c3%b6%c3%9fe%201"])
def test_a_model_with_a_slash_and_odd_letters_is_found(name: bytes) -> None:
    engine = Engine(json_answer(b"{}"))
    assert ask(engine, b"GET", b"/upstream/" + name + b"/x/y?z", ODD).status == 200
    assert engine.asked[0][0].startswith(b"GET /x/y?z HTTP/1.1\r\n")
    assert ask(engine, b"GET", b"/v1/models/" + name, ODD).json()["id"] == ODD


def test_readings_of_a_name_are_few_and_the_shortest_comes_first() -> None:
    readings = list(read_within(b"/upstream/a/b%2Fc/d/e/f/g?h/i", UPSTREAM))
    assert [one.name for one in readings] == ["a", "a/b/c", "a/b/c/d", "a/b/c/d/e"]
    assert readings[1].target == b"/d/e/f/g?h/i"
    assert readings[1].path == "/d/e/f/g"
    assert list(read_within(b"/upstream/a/b", SERVICE)) == []


def test_the_body_of_such_a_request_is_not_looked_into() -> None:
    engine = Engine(json_answer(b'{"model": "adapter"}'))
    body = b'not json, "model": "other"'
    used: list[str] = []

    async def story(stage: Stage) -> None:
        client = await stage.request(b"POST", b"/service/chat/v1/chat/completions", body=body)
        assert (await client.read_answer()).status == 200
        while not stage.used:
            await asyncio.sleep(0)
        used.append(stage.used[0].path)
        lines = (await stage.metrics.render()).text.splitlines()
        assert not any(
            line.startswith(b"stoker_gateway_substituted") and b"_created" not in line and not line.endswith(b" 0.0")
            for line in lines
        )

    run(engine, story)
    assert engine.asked[0][1] == body
    assert used == ["/service/chat/v1/chat/completions"]


def test_a_keys_scope_holds_on_every_path(home: Home) -> None:
    home.add_fake("one")
    home.add_fake("two")
    home.run("up", "one")
    home.run("up", "two")
    key = home.json("keys", "add", "narrow", "--models", "one")["key"]
    for target in ("/service/two/x", "/upstream/two/x", "/service/nothing/x", "/upstream/nothing/x"):
        assert send(home, target, key)[1]["error"]["code"] == "model_not_allowed"
    assert send(home, "/v1/models/two", key)[0] == 404
    assert send(home, "/running", key)[1] == {"running": [{"model": "one", "state": "ready"}]}
    assert [one["id"] for one in send(home, "/v1/models", key)[1]["data"]] == ["one"]
    for target in ("/service/one/health", "/upstream/one/health"):
        assert send(home, target, key) == (200, {"status": "ok"})
    for target in (
        "/service/one/slots/0",
        "/service/one/v1/../slots/0",
        "/upstream/one/v1/load_lora_adapter",
        "/service/one/",
    ):
        status, said = send(home, target, key, "POST")
        assert (status, said["error"]["code"]) == (403, "path_not_allowed")
        assert send(home, target, home.daemon.key, "POST")[0] != 403


def test_llama_swaps_users_see_what_runs_and_unload_it(home: Home) -> None:
    home.add_fake("one", 'served_name = "org/one"')
    home.run("up", "one")
    key, control = home.daemon.key, home.paths.control_key_file.read_text().strip()
    assert send(home, "/running", key)[1] == {"running": [{"model": "org/one", "state": "ready"}]}
    assert send(home, "/upstream/org/one/health", key) == (200, {"status": "ok"})
    assert send(home, "/api/models/unload", key, "POST")[0] == 401
    assert send(home, "/api/models/unload/nothing", control, "POST")[0] == 400
    for name in ("org%2Fone", "org/one"):
        status, views = send(home, f"/api/models/unload/{name}", control, "POST")
        assert (status, [one["name"] for one in views]) == (200, ["one"])
    home.await_state("one", State.STOPPED)
    assert send(home, "/running", key)[1] == {"running": []}
    assert send(home, "/upstream/org/one/health", key)[0] == 503
    assert send(home, "/api/models/unload", control, "POST")[0] == 200
