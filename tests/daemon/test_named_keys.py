"""Named keys with a real daemon: what they open, when they stop opening it, and what is written of their use."""

from __future__ import annotations

import http.client
import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from home import Home, wait_for

CHAT = {"messages": [{"role": "user", "content": "hi"}]}
SECRET_QUESTION = "a-question-that-must-not-be-kept"


def ask(
    home: Home, key: str, path: str = "/v1/models", body: object = None, **headers: str
) -> tuple[int, http.client.HTTPMessage, Any]:
    """Sends one request with a key; returns (status, headers, body)."""
    with closing(http.client.HTTPConnection(home.daemon.url.removeprefix("http://"), timeout=30)) as connection:
        sent = {"authorization": f"Bearer {key}", **{name.replace("_", "-"): text for name, text in headers.items()}}
        connection.request("POST" if body is not None else "GET", path, None if body is None else json.dumps(body), sent)
        reply = connection.getresponse()
        raw = reply.read()
    return reply.status, reply.headers, json.loads(raw) if raw.startswith(b"{") else raw


def chat(home: Home, key: str, model: str = "quick", **more: object) -> tuple[int, http.client.HTTPMessage, Any]:
    return ask(home, key, "/v1/chat/completions", {"model": model, **CHAT, **more})


def add(home: Home, *words: str) -> str:
    key: str = home.json("keys", "add", *words)["key"]
    return key


def code(answer: tuple[int, http.client.HTTPMessage, Any]) -> tuple[int, str]:
    return answer[0], answer[2].get("error", {}).get("code", "")


@pytest.fixture
def quick(home: Home) -> Home:
    """A Stoker with two scripted engines, one of which is up."""
    home.add_fake("quick")
    home.add_fake("other")
    home.run("up", "quick")
    return home


def revoke_while_openai_reads(home: Home, key: str) -> openai.APIError:
    with openai.OpenAI(base_url=f"{home.daemon.url}/v1", api_key=key, max_retries=0) as client:
        stream = client.chat.completions.create(model="slow", messages=[{"role": "user", "content": "hi"}], stream=True)
        next(stream)
        home.run("keys", "revoke", "alice")
        with pytest.raises(openai.APIError) as caught:
            list(stream)
    return caught.value


def revoke_while_anthropic_reads(home: Home, key: str) -> anthropic.APIError:
    with anthropic.Anthropic(base_url=home.daemon.url, api_key=key, max_retries=0) as client:
        stream = client.messages.create(
            model="slow", messages=[{"role": "user", "content": "hi"}], max_tokens=9, stream=True
        )
        home.run("keys", "revoke", "alice")
        with pytest.raises(anthropic.APIError) as caught:
            list(stream)
    return caught.value


@pytest.mark.parametrize("revoke", [revoke_while_openai_reads, revoke_while_anthropic_reads], ids=["openai", "anthropic"])
def test_a_client_is_told_in_its_stream_that_its_key_was_revoked(
    home: Home, revoke: Callable[[Home, str], openai.APIError | anthropic.APIError]
) -> None:
    home.add_fake("slow", stream_gate=str(home.folder / "gate"))
    home.run("up", "slow")
    problem = revoke(home, add(home, "alice"))
    assert "The key `alice` was revoked." in str(problem)
    assert isinstance(problem.body, dict)
    assert problem.body.get("error", problem.body)["type"] == "authentication_error"


def test_a_key_opens_the_models_and_nothing_else(quick: Home) -> None:
    key = add(quick, "alice")
    assert chat(quick, key)[0] == 200
    assert [code(ask(quick, key, path)) for path in ("/metrics", "/api/status", "/api/keys")] == [
        (401, "invalid_api_key")
    ] * 3
    assert ask(quick, "", x_api_key=key, authorization="")[0] == 200
    with openai.OpenAI(base_url=f"{quick.daemon.url}/v1", api_key=key, max_retries=0) as client:
        assert [model.id for model in client.models.list()] == ["quick"]


def test_a_key_sees_and_asks_its_own_models_alone(quick: Home) -> None:
    quick.run("up", "other")
    key = add(quick, "alice", "--models", "other,later")
    assert [model["id"] for model in ask(quick, key)[2]["data"]] == ["other"]
    assert chat(quick, key, "other")[0] == 200
    refused = chat(quick, key, "quick")
    assert code(refused) == (403, "model_not_allowed")
    assert refused[2]["error"]["src"] == "stoker"
    assert "Models of this key: `later`, `other`." in refused[2]["error"]["message"]
    assert code(chat(quick, key, "no-such-model")) == (403, "model_not_allowed")
    unknown = chat(quick, key, "later")
    assert code(unknown) == (404, "model_not_found")
    assert "quick" not in unknown[2]["error"]["message"]
    assert [model["id"] for model in ask(quick, quick.daemon.key)[2]["data"]] == ["quick", "other"]


def test_a_key_over_its_rate_is_told_when_to_come_back(quick: Home) -> None:
    key = add(quick, "alice", "--rpm", "2")
    assert [chat(quick, key)[0] for _ in range(2)] == [200, 200]
    refused = chat(quick, key)
    assert code(refused) == (429, "rate_limit_exceeded")
    assert 1 <= int(refused[1]["retry-after"]) <= 30
    assert chat(quick, quick.daemon.key)[0] == 200
    client = openai.OpenAI(base_url=f"{quick.daemon.url}/v1", api_key=key, max_retries=0)
    with client, pytest.raises(openai.RateLimitError, match="2 requests a minute"):
        client.models.list()


def send_stream(home: Home, key: str, model: str) -> http.client.HTTPConnection:
    """Asks for a stream."""
    connection = http.client.HTTPConnection(home.daemon.url.removeprefix("http://"), timeout=30)
    body = json.dumps({"model": model, "stream": True, **CHAT})
    connection.request("POST", "/v1/chat/completions", body, {"authorization": f"Bearer {key}"})
    return connection


def open_stream(home: Home, key: str, model: str) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    """Begins a stream and reads its first line."""
    connection = send_stream(home, key, model)
    reply = connection.getresponse()
    assert b"token0" in reply.readline()
    return connection, reply


def test_revoking_holds_at_once_and_cuts_what_runs_so_that_it_never_looks_whole(home: Home) -> None:
    gate = home.folder / "gate"
    home.add_fake("slow", stream_gate=str(gate))
    home.run("up", "slow")
    keys = [add(home, name) for name in ("alice", "bob")]
    streams = [open_stream(home, key, "slow") for key in keys]
    assert "requests cut: 1" in home.run("keys", "revoke", "alice").stdout
    assert code(ask(home, keys[0])) == (401, "revoked_api_key")
    wait_for("the request to be over", lambda: b'key="alice",status="200"} 1.0' in ask(home, home.daemon.key, "/metrics")[2])
    with pytest.raises(http.client.IncompleteRead) as caught:
        streams[0][1].read()
    assert b"The key `alice` was revoked." in caught.value.partial
    assert b"[DONE]" not in caught.value.partial
    gate.touch()
    assert streams[1][1].read().endswith(b"data: [DONE]\n\n")
    for connection, _ in streams:
        connection.close()
    assert ask(home, keys[1])[0] == 200


def test_revoking_answers_who_still_waits_and_leaves_the_engine(home: Home) -> None:
    seen = home.folder / "seen"
    home.add_fake("watchful", aborts=str(seen))
    home.run("up", "watchful")
    key = add(home, "alice")
    with closing(http.client.HTTPConnection(home.daemon.url.removeprefix("http://"), timeout=30)) as connection:
        body = json.dumps({"model": "watchful", **CHAT})
        connection.request("POST", "/v1/chat/completions", body, {"authorization": f"Bearer {key}"})
        wait_for("the request to arrive", lambda: seen.exists() and seen.read_text() == "begun\n")
        home.run("keys", "revoke", "alice")
        reply = connection.getresponse()
        assert (reply.status, json.loads(reply.read())["error"]["code"]) == (401, "revoked_api_key")
    wait_for("the engine to see it leave", lambda: seen.read_text() == "left\n")


def test_a_key_with_too_many_running_waits_in_line_and_others_do_not(home: Home) -> None:
    gate = home.folder / "gate"
    home.add_fake("slow", stream_gate=str(gate))
    home.add_fake("strict", "waiting = 0", stream_gate=str(gate))
    for name in ("slow", "strict"):
        home.run("up", name)
    key = add(home, "alice", "--running", "1")
    streams = [open_stream(home, key, "strict"), open_stream(home, key, "slow")]
    refused = chat(home, key, "strict", stream=True)
    assert (code(refused), refused[1]["retry-after"]) == ((429, "queue_full"), "5")
    assert "1 requests of this key run, which is its limit" in refused[2]["error"]["message"]
    streams.append(open_stream(home, home.daemon.key, "slow"))
    waits = send_stream(home, key, "slow")
    gate.touch()
    for connection, reply in (*streams, (waits, waits.getresponse())):
        assert reply.read().endswith(b"data: [DONE]\n\n")
        connection.close()


def test_keys_outlive_the_daemon_and_work_without_one(quick: Home) -> None:
    alice, bob = add(quick, "alice"), add(quick, "bob")
    quick.kill_daemon()
    quick.run("keys", "revoke", "bob")
    carol = add(quick, "carol", "--expires", "1s")
    assert [view["name"] for view in quick.json("keys", "list")] == ["alice", "bob", "carol"]
    quick.run("up", "quick")
    assert chat(quick, alice)[0] == 200
    assert code(chat(quick, bob)) == (401, "revoked_api_key")
    wait_for("the key's end", lambda: code(ask(quick, carol)) == (401, "expired_api_key") or None)
    assert [view["state"] for view in quick.json("keys", "list")] == ["valid", "revoked", "expired"]


def test_a_revocation_that_the_disk_does_not_take_holds_all_the_same(quick: Home) -> None:
    alice, bob = add(quick, "alice"), add(quick, "bob")
    with closing(sqlite3.connect(quick.paths.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        said = quick.run("keys", "revoke", "alice", code=1).stderr
        other.execute("ROLLBACK")
    assert "refused from now on, but that is not saved" in said
    add(quick, "carol")
    assert [code(ask(quick, alice)), ask(quick, bob)[0]] == [(401, "revoked_api_key"), 200]
    quick.run("keys", "revoke", "alice")
    assert {view["name"]: view["state"] for view in quick.json("keys", "list")}["alice"] == "revoked"


def test_a_thousand_wrong_keys_cost_the_owner_nothing(quick: Home) -> None:
    alice = add(quick, "alice")
    wrong = ["k" * 50_000, "ключ-🔑".encode().decode("latin-1"), "", alice[:-1], alice + "x", "\xff" * 300]
    with closing(http.client.HTTPConnection(quick.daemon.url.removeprefix("http://"), timeout=30)) as connection:
        seen = []
        for number in range(1000):
            key = wrong[number] if number < len(wrong) else f"guess-{number}"
            connection.request("GET", "/v1/models", None, {"authorization": f"Bearer {key}"})
            reply = connection.getresponse()
            assert b'"src":"stoker"' in reply.read()
            seen.append(reply.status)
        assert set(seen[:20]) == {401}
        assert seen[-1] == 429
        assert int(reply.headers["retry-after"]) > 0
    assert ask(quick, quick.daemon.key)[0] == 200
    assert ask(quick, alice)[0] == 200
    told = [line for line in quick.paths.daemon_log.read_text().splitlines() if "wrong keys" in line]
    assert len(told) in (1, 2)


def test_neither_keys_nor_questions_are_written_anywhere(quick: Home) -> None:
    key = add(quick, "alice")
    wrong = "sk-stoker-a-wrong-key-of-somebody-else"
    ask(quick, wrong)
    question = {"model": "quick", "messages": [{"role": "user", "content": SECRET_QUESTION}]}
    assert ask(quick, key, "/v1/chat/completions", question)[0] == 200
    assert ask(quick, key, "/v1/chat/completions", {**question, "model": SECRET_QUESTION})[0] == 404
    quick.run("usage")
    argv = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in (quick.daemon_pid, *quick.engines())]
    quick.run("down")
    files = [file for file in quick.folder.rglob("*") if file.is_file()]
    kept = {file: file.read_bytes() for file in files if file.parent != quick.paths.state or file.suffix != ".key"}
    for secret in (key, key.removeprefix("sk-stoker-"), wrong, SECRET_QUESTION):
        assert [file for file, raw in kept.items() if secret.encode() in raw] == []
        assert not any(secret.encode() in words for words in argv)


def test_usage_is_kept_by_key_model_and_day(quick: Home) -> None:
    key = add(quick, "alice")
    for _ in range(3):
        chat(quick, key)
    chat(quick, key, "nothing")
    chat(quick, quick.daemon.key)
    ask(quick, "wrong")
    ask(quick, key)
    view = quick.json("usage")
    assert [(line["name"], line["requests"], line["failed"]) for line in view["lines"]] == [
        ("alice", 4, 1),
        ("owner", 2, 0),
    ]  # `up` asked too
    assert view["unwritten"] == 0
    assert [(line["name"], line["requests"]) for line in quick.json("usage", "--by", "model")["lines"]] == [
        ("", 1),
        ("quick", 5),
    ]
    assert [line["requests"] for line in quick.json("usage", "--by", "day", "--since", "7d")["lines"]] == [6]
    [alice] = quick.json("keys", "list")
    assert alice["last_used"] >= alice["created"]
    assert b'stoker_gateway_key_requests_total{key="alice",status="200"} 3.0' in ask(quick, quick.daemon.key, "/metrics")[2]
    quick.run("down")
    assert [line["requests"] for line in quick.json("usage")["lines"]] == [4, 2]
    assert "alice" in quick.run("usage").stdout


def test_usage_is_forgotten_beyond_its_bounds(home: Home) -> None:
    home.configure(gateway="port = 0\nusage_rows = 2")
    home.add_fake("quick")
    home.run("up", "quick")
    for _ in range(5):
        chat(home, home.daemon.key)
    assert [line["requests"] for line in home.json("usage")["lines"]] == [2]


def test_a_damaged_file_of_usage_keeps_nobody_from_asking(home: Home) -> None:
    home.paths.state.mkdir(mode=0o700)
    home.paths.usage_database.write_bytes(b"this is no database at all, but long enough to be one " * 40)
    home.add_fake("quick")
    home.run("up", "quick")
    assert chat(home, home.daemon.key)[0] == 200
    assert "not a database" in home.run("usage", code=1).stderr
    assert "usage is not written" in home.paths.daemon_log.read_text()


def test_a_short_key_of_ones_own_is_not_enough_for_other_machines(home: Home) -> None:
    home.configure(gateway='host = "0.0.0.0"\nport = 0')
    home.paths.state.mkdir(mode=0o700)
    home.paths.key_file.write_text("hunter2\n")
    said = home.run("up", code=3).stderr
    assert "the gateway does not listen on 0.0.0.0" in said
    assert "can be guessed" in said
    assert "hunter2" not in said
    home.configure()
    home.add_fake("quick")
    home.run("up", "quick")
    assert ask(home, "hunter2")[0] == 200


@pytest.mark.parametrize("daemon", [True, False], ids=["daemon", "no daemon"])
def test_a_key_for_a_model_that_nobody_has_is_made_with_a_warning_that_names_those_that_are_there(
    home: Home, daemon: bool
) -> None:
    home.add_fake("quick", 'served_name = "qwen3"')
    home.paths.config.write_text(home.paths.config.read_text() + '[alias]\ncoder = "qwen3"\n')
    if daemon:
        home.run("up", "quick")
        home.run("up")
    known = "`coder`, `qwen3`, `stoker-demo`" if daemon else "`coder`, `qwen3`"
    made = home.run("keys", "add", "alice", "--models", "qwen3,qwen4,coder")
    assert made.stdout.startswith("sk-stoker-")
    assert f"no service or alias is called `qwen4`, so this key cannot ask that for now. Models: {known}" in made.stderr
    assert len(home.json("keys", "add", "bob", "--models", "quick")["warnings"]) == 1  # a service's name is no model's
    assert home.json("keys", "add", "carol", "--models", "qwen3,coder")["warnings"] == []
    assert home.json("keys", "add", "dave")["warnings"] == []


def test_a_key_is_made_without_a_warning_where_stoker_toml_cannot_be_read(home: Home) -> None:
    home.run("keys", "add", "alice", "--models", "a")
    home.paths.config.write_text("[[[")
    assert home.json("keys", "add", "bob", "--models", "a")["warnings"] == []


def test_the_verbs_say_what_is_wrong(home: Home) -> None:
    assert "No named key yet" in home.run("keys", "list").stdout
    assert "No request for a model" in home.run("usage").stdout
    assert "there is no key called `alice`" in home.run("keys", "revoke", "alice", code=2).stderr
    made = home.run("keys", "add", "alice", "--models", "a, b", "--priority", "high", "--expires", "30d", "--rpm", "60")
    assert made.stdout.startswith("sk-stoker-")
    assert made.stdout.count("\n") == 1
    row = home.run("keys", "list").stdout.splitlines()[1].split("  ")
    cells = [cell.strip() for cell in row if cell]
    assert re.fullmatch(r"\d+ s ago", cells.pop(6))
    assert cells == [
        "alice",
        "valid",
        "a,b",
        "60",
        "-",
        "high",
        "never",
        "in 29 d",
    ]
    assert "there is a key called `alice` already" in home.run("keys", "add", "alice", code=3).stderr
    for words in (
        ("--rpm", "0"),
        ("--expires", "soon"),
        ("--expires", "0d"),
        ("--priority", "101"),
        ("--priority", "urgent"),
    ):
        home.run("keys", "add", "bob", *words, code=2)
    home.run("keys", "add", "bob", "--models", ",", code=2)
    home.run("keys", "add", "Bob!", code=2)
    home.run("usage", "--since", "yesterday", code=2)
    home.run("usage", "--by", "moon", code=2)


def test_a_key_for_metrics_reads_them_and_asks_no_model(quick: Home) -> None:
    key = add(quick, "prometheus", "--metrics")
    status, _, page = ask(quick, key, "/metrics")
    assert status == 200 and b"stoker_alert_firing" in page
    assert code(chat(quick, key)) == (401, "invalid_api_key")
    assert code(ask(quick, key, "/v1/models")) == (401, "invalid_api_key")
    assert "none, metrics" in quick.run("keys", "list").stdout
    plain = add(quick, "alice")
    assert "stoker keys add --metrics" in ask(quick, plain, "/metrics")[2]["error"]["message"]
    said = quick.run("keys", "add", "both", "--metrics", "--rpm", "5", code=2).stderr
    assert "a key for metrics asks no models" in said
