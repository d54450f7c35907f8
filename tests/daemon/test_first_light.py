"""From nothing to a real token and back, with the real llama.cpp."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from home import Home, wait_for
from stoker.box import is_running
from stoker.records import State


def test_up_serves_the_demo_model_and_says_what_to_do_next(home: Home) -> None:
    said = home.run("up").stdout
    assert "READY" in said
    assert "answered through the gateway; first token after" in said
    assert f"address  {home.daemon.url}/v1" in said
    assert "curl" in said
    assert home.daemon.key in said


def test_status_json_has_what_programs_rely_on(demo: Home) -> None:
    status = demo.json("status")
    assert status["gateway"] == {"url": f"{demo.daemon.url}/v1", "key_file": str(demo.paths.key_file)}
    assert status["daemon"]["running"] is True
    [service] = status["services"]
    assert service["name"] == "demo"
    assert service["model"] == "stoker-demo"
    assert service["state"] == "READY"
    assert service["why"].startswith("stoker-demo answered")
    assert service["since"] > 1_700_000_000
    assert service["memory_bytes"] > 20 * 1024**2
    assert service["kv_tokens"] == 4 * 4096  # as many as its four requests may have together


def test_the_key_is_for_its_owner_alone_and_in_no_log_argv_or_database(demo: Home) -> None:
    assert stat.S_IMODE(demo.paths.key_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(demo.paths.state.stat().st_mode) == 0o700
    keys = [demo.paths.key_file.read_bytes().strip(), demo.paths.engine_key_file.read_bytes().strip()]
    files = [file for file in demo.paths.state.rglob("*") if file.is_file() and not file.name.endswith(".key")]
    for pid in (*demo.engines(), demo.daemon_pid):
        argv = Path(f"/proc/{pid}/cmdline").read_bytes()
        assert not any(key in argv for key in keys)
    for file in files:
        content = file.read_bytes()
        assert not any(key in content for key in keys), f"a key is in {file}"


def test_ask_streams_an_answer(demo: Home) -> None:
    answer = demo.json("ask", "Who are you?", "--temperature", "0")
    assert answer["model"] == "stoker-demo"
    assert answer["answer"]
    assert 0 < answer["ttft_s"] < 60


def test_up_again_changes_nothing_and_up_with_another_wish_starts_a_new_launch(home: Home) -> None:
    first = home.json("up")
    again = home.json("up")
    assert again["pid"] == first["pid"]
    other = home.json("up", "demo", "--context", "1024")
    assert other["state"] == "READY"
    assert other["pid"] != first["pid"]
    assert len(home.engines()) == 1
    models = home.daemon.stream("GET", "/v1/models", None)
    assert json.loads(b"".join(models))["data"][0]["context_tokens"] == 1024


def test_down_of_a_service_stops_it_and_leaves_the_daemon(home: Home) -> None:
    home.run("up")
    [stopped] = home.json("down", "demo")
    assert stopped["state"] == "STOPPED"
    assert home.engines() == {}
    assert home.service("demo").state is State.STOPPED


def test_down_of_everything_leaves_no_process_and_a_correct_status(home: Home) -> None:
    home.run("up")
    pid = home.daemon_pid
    home.run("down")
    assert home.engines() == {}
    assert pid is not None
    wait_for("the daemon's end", lambda: not is_running(pid))
    status = home.json("status")
    assert status["daemon"]["running"] is False
    assert status["services"][0]["state"] == "STOPPED"


def test_the_engine_drafts_with_the_demos_own_draft_model(home: Home) -> None:
    home.run("up", "demo", "--speculation", "draft", "--draft-tokens", "2")
    home.run("ask", "Write a function that adds two numbers.", "--temperature", "0")
    assert any("draft acceptance" in line for line in home.daemon.tail("demo", 50))


def test_logs_prints_what_the_engine_said(demo: Home) -> None:
    demo.run(
        "ask", "Hello"
    )  # its server may have said so much to other tests that its start is no longer among the last lines
    assert "stop processing" in demo.run("logs", "demo").stdout
    assert any("stop processing" in line for line in demo.json("logs", "demo"))


def test_an_external_llama_server_is_used_when_the_user_names_one(home: Home) -> None:
    home.add_fake("mine")
    view = home.json("up", "mine")
    assert view["state"] == "READY"
    [pid] = home.engines()
    assert "fake-llama-server" in Path(f"/proc/{pid}/cmdline").read_text()


def test_a_forgotten_service_is_not_listed_any_more_and_can_come_back(home: Home) -> None:
    home.add_fake("other")
    home.run("up")
    home.run("up", "other")
    home.run("down", "demo", "--forget")
    assert [service["name"] for service in home.json("status")["services"]] == ["other"]
    home.kill_daemon()
    home.run("up", "other")
    assert [service["name"] for service in home.json("status")["services"]] == ["other"]
    assert home.json("up")["state"] == "READY"
