"""The gateway with hostile clients and failing engines."""

from __future__ import annotations

import http.client
import json
import os
import resource
import signal
import socket
import time
from typing import Any

import openai
import psutil
import pytest

from engine_metrics import cut_short, requests_running
from home import Home, wait_for
from stoker.records import State

CHAT = {"messages": [{"role": "user", "content": "hi"}]}


def send(home: Home, body: bytes | None, path: str = "/v1/chat/completions", **headers: str) -> tuple[int, Any, Any]:
    """Sends one request with the key; returns (status, headers, body as JSON)."""
    connection = http.client.HTTPConnection(home.daemon.url.removeprefix("http://"), timeout=30)
    sent = {"authorization": f"Bearer {home.daemon.key}", **{name.replace("_", "-"): text for name, text in headers.items()}}
    connection.request("POST" if body is not None else "GET", path, body, sent)
    reply = connection.getresponse()
    raw = reply.read()
    connection.close()
    return reply.status, reply.headers, json.loads(raw) if raw.startswith(b"{") else raw


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"not json", 400, "invalid_json"),
        (b"", 400, "invalid_json"),
        (b"\xff\xfe{}", 400, "invalid_json"),
        (b"[1, 2]", 400, "invalid_model"),
        (b"{}", 400, "invalid_model"),
        (b'{"model": 7}', 400, "invalid_model"),
        (b'{"model": null}', 400, "invalid_model"),
        (b'{"model": "stoker-demo", "x": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", 400, "nested_too_deeply"),
        (b'{"model": "stoker-demo"} and more', 400, "invalid_json"),
        (b'{"model": "' + b"m" * 50 * 1024**2 + b'"}', 413, "body_too_large"),
    ],
    ids=["words", "empty", "not utf-8", "a list", "no model", "a number", "null", "nested", "trailing", "50 MB"],
)
def test_a_bad_body_is_refused_in_openais_shape(demo: Home, body: bytes, status: int, code: str) -> None:
    answered, headers, error = send(demo, body)
    assert (answered, error["error"]["code"]) == (status, code)
    assert error["error"]["src"] == "stoker"
    assert set(error["error"]) == {"message", "type", "param", "code", "src"}
    assert headers["content-type"] == "application/json"


def test_every_answer_has_a_request_id_and_keeps_the_clients(demo: Home) -> None:
    assert send(demo, None, "/v1/models")[1]["x-request-id"]
    assert send(demo, None, "/v1/models", x_request_id="mine-1")[1]["x-request-id"] == "mine-1"


@pytest.mark.parametrize("path", ["/v1/models", "/metrics", "/api/status", "/api/services", "/v1/nothing", "/nothing"])
def test_without_the_key_nothing_is_told(demo: Home, path: str) -> None:
    status, headers, error = send(demo, None, path, authorization="Bearer nonsense")
    assert (status, error["error"]["code"]) == (401, "invalid_api_key")
    assert headers["www-authenticate"] == "Bearer"


def test_the_clients_key_starts_no_programs_and_the_control_key_asks_no_models(demo: Home) -> None:
    wish = json.dumps({"name": "evil", "model": "/x.gguf", "server": "/bin/true"}).encode()
    assert send(demo, wish, "/api/services")[0] == 401
    assert send(demo, None, "/api/status")[0] == 401
    control = f"Bearer {demo.paths.control_key_file.read_text().strip()}"
    assert send(demo, None, "/api/status", authorization=control)[0] == 200
    assert send(demo, None, "/v1/models", authorization=control)[0] == 401
    assert send(demo, None, "/metrics", authorization=control)[0] == 200


def test_a_gateway_on_all_addresses_answers_and_can_be_taken_down(home: Home) -> None:
    home.configure(gateway='host = "::"\nport = 0\nallowed_hosts = ["Spark.Local"]')
    home.add_fake("other")
    home.run("up", "other")
    assert "other machines reach this address" in home.paths.daemon_log.read_text()
    address = home.daemon.url.removeprefix("http://")
    for host in ("spark.local", "SPARK.LOCAL.", address):
        connection = http.client.HTTPConnection(address, timeout=30)
        connection.request("GET", "/health", headers={"host": host})
        assert connection.getresponse().status == 200
        connection.close()
    home.run("down")
    assert home.daemon_pid is None


def test_more_clients_than_descriptors_cost_the_daemon_nothing(home: Home) -> None:
    def few_descriptors() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))

    home.run("up", preexec_fn=few_descriptors)
    pid = home.daemon_pid
    host, port = home.daemon.url.removeprefix("http://").split(":")
    clients = [socket.create_connection((host, int(port))) for _ in range(300)]
    wait_for("two looks at the memory", lambda: "stoker" in home.paths.daemon_log.read_text())
    for client in clients:
        client.close()
    assert home.json("ask", "Hello?", "--max-tokens", "2")["answer"]
    assert home.daemon_pid == pid


@pytest.mark.parametrize("size_bytes", [60_000, 66_000, 100_000, 131_072, 1_000_000, 5_000_000])
def test_a_large_body_is_answered_once_and_whole(demo: Home, size_bytes: int) -> None:
    body = {"model": "stoker-demo", "stream": True, "max_tokens": 4, "padding": "x" * size_bytes, **CHAT}
    for _ in range(3):
        status, _, raw = send(demo, json.dumps(body).encode())
        assert status == 200
        assert raw.endswith(b"data: [DONE]\n\n")


def test_health_needs_no_key(demo: Home) -> None:
    assert send(demo, None, "/health", authorization="")[2] == {"status": "ok"}


def test_a_foreign_host_or_origin_is_refused_before_the_key_is_looked_at(demo: Home) -> None:
    for headers in ({"host": "evil.example"}, {"origin": "https://evil.example"}, {"origin": "null"}):
        assert send(demo, None, "/v1/models", **headers)[0] == 403
    assert send(demo, None, "/v1/models", host="localhost:1", origin="http://127.0.0.1:8700")[0] == 200


def test_unknown_paths_and_methods_are_refused(demo: Home) -> None:
    assert send(demo, None, "/v1/nothing")[0] == 404
    control = f"Bearer {demo.paths.control_key_file.read_text().strip()}"
    assert send(demo, None, "/nothing", authorization=control)[0] == 404
    assert send(demo, None, "/v1/chat/completions")[0] == 405
    assert send(demo, b"{}", "/v1/models")[0] == 405


def test_metrics_are_what_prometheus_reads(demo: Home) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    status, _, raw = send(demo, None, "/metrics")
    families = {family.name: family for family in text_string_to_metric_families(raw.decode())}
    assert status == 200
    states = {s.labels["state"]: s.value for s in families["stoker_service_state"].samples if s.labels["service"] == "demo"}
    assert states["READY"] == 1
    assert sum(states.values()) == 1


def test_a_service_that_is_not_ready_says_its_state_and_when_to_come_back(home: Home) -> None:
    home.add_fake("slow", gate=str(home.folder / "gate"))
    home.add_fake("quick")
    home.run("up", "quick")
    from stoker.config import read_config

    home.daemon.up(read_config(home.paths.config).services["slow"])
    home.await_state("slow", State.LOADING)
    status, headers, error = send(home, json.dumps({"model": "slow", **CHAT}).encode())
    assert (status, error["error"]["code"]) == (503, "service_loading")
    assert int(headers["retry-after"]) > 0
    assert "Nothing else answers in its place" in error["error"]["message"]
    home.run("down", "slow")
    status, _, error = send(home, json.dumps({"model": "slow", **CHAT}).encode())
    assert (status, error["error"]["code"]) == (503, "service_stopped")


def test_an_engines_error_passes_through_with_its_headers(home: Home) -> None:
    home.add_fake("busy", status=429, headers={"retry-after": "7", "x-engine": "kept"})
    home.run("up", "busy")
    status, headers, error = send(home, json.dumps({"model": "busy", **CHAT}).encode())
    assert status == 429
    assert (headers["retry-after"], headers["x-engine"]) == ("7", "kept")
    assert error == {"error": {"message": "the engine refuses", "type": "engine"}}


def test_an_engine_that_dies_mid_stream_ends_it_with_an_error_event(home: Home) -> None:
    gate = home.folder / "gate"
    home.add_fake("mortal", dies="streaming", stream_gate=str(gate))
    home.run("up", "mortal")
    with openai.OpenAI(base_url=f"{home.daemon.url}/v1", api_key=home.daemon.key, max_retries=0) as client:
        stream = client.chat.completions.create(model="mortal", messages=[{"role": "user", "content": "hi"}], stream=True)
        assert next(iter(stream)).choices[0].delta.content == "token0 "
        gate.touch()
        with pytest.raises(openai.APIError, match="broke the connection before its reply was whole"):
            list(stream)


def test_a_real_engine_killed_mid_stream_ends_it_with_an_error_event(home: Home) -> None:
    view = home.json("up")
    with openai.OpenAI(base_url=f"{home.daemon.url}/v1", api_key=home.daemon.key, max_retries=0) as client:
        stream = client.chat.completions.create(
            model="stoker-demo", messages=[{"role": "user", "content": "hi"}], stream=True, max_tokens=100_000,
            extra_body={"ignore_eos": True},
        )  # fmt: skip
        next(iter(stream))
        os.kill(view["pid"], signal.SIGKILL)
        with pytest.raises(openai.APIError, match="broke the connection"):
            list(stream)
    home.await_state("demo", State.READY)


def test_an_engine_that_falls_silent_is_given_up_at_a_limit(home: Home) -> None:
    home.configure(gateway="port = 0\nengine_silence_limit_s = 0.5")
    home.add_fake("mute", hangs_after=1)
    home.run("up", "mute")
    connection = http.client.HTTPConnection(home.daemon.url.removeprefix("http://"), timeout=30)
    body = json.dumps({"model": "mute", **CHAT})
    connection.request("POST", "/v1/chat/completions", body, {"authorization": f"Bearer {home.daemon.key}"})
    with pytest.raises(http.client.IncompleteRead) as broken:
        connection.getresponse().read()
    connection.close()
    raw = broken.value.partial
    assert b"said nothing for 0.5 s (gateway.engine_silence_limit_s)" in raw
    assert b"[DONE]" not in raw


def post(home: Home, body: dict[str, object]) -> socket.socket:
    """Sends a chat and returns the connection, unread."""
    raw = json.dumps(body).encode()
    host, port = home.daemon.url.removeprefix("http://").split(":")
    client = socket.create_connection((host, int(port)))
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {home.daemon.key}\r\n"
        f"content-length: {len(raw)}\r\n\r\n"
    )
    client.sendall(head.encode() + raw)
    return client


def test_a_client_that_leaves_a_stream_before_reading_any_of_it_ends_its_request(demo: Home) -> None:
    endless = {"model": "stoker-demo", "max_tokens": 100_000, "ignore_eos": True, "stream": True, **CHAT}
    with cut_short(demo, "demo"), post(demo, endless):
        wait_for("the engine to begin", lambda: requests_running(demo, "demo") == 1)


def test_a_client_that_leaves_a_whole_reply_closes_its_connection_to_the_engine(home: Home) -> None:
    # llama.cpp (build 11549) notices that only at its next write, which for a whole reply is the end; others at once.
    seen = home.folder / "seen"
    home.add_fake("watchful", aborts=str(seen))
    home.run("up", "watchful")
    with post(home, {"model": "watchful", **CHAT}):
        wait_for("the request to arrive", lambda: seen.exists() and seen.read_text() == "begun\n")
    wait_for("the engine to see it leave", lambda: seen.read_text() == "left\n")


def is_idle(pid: int | None) -> bool:
    """Tells whether a process used no processor time for a quarter of a second."""
    process = psutil.Process(pid)
    before = process.cpu_times()
    time.sleep(0.25)
    return before == process.cpu_times()


def test_a_reader_that_stalls_holds_the_engine_back_and_not_the_gateways_memory(home: Home) -> None:
    home.add_fake("long", tokens=400_000)
    home.run("up", "long")
    with post(home, {"model": "long", "stream": True, **CHAT}) as client:
        client.recv(1)
        pid = home.service("long").pid
        wait_for("the engine to be held back", lambda: is_idle(pid))
        assert (home.daemon.status().daemon.memory_bytes or 0) < 100 * 1024**2  # the whole reply has 70 MB
    assert send(home, None, "/health")[0] == 200
