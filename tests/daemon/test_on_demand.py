"""Services that a request starts: the real daemon, scripted engines, and a client at the gateway."""

from __future__ import annotations

import http.client
import json
import re
import socket
import sys
import time
from typing import Any, NamedTuple

import pytest

from home import Home, wait_for
from stoker.config import read_config
from stoker.flows.lease import hold_run
from stoker.records import State

ASKED = "on_demand = true\n"
GROUP = 'group = "models"\n'
BODY = b'{ "messages": [{"role": "user", "content": "hi"}], "stream": true, "model" : "%s" }'


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error(self) -> Any:
        """The error in OpenAI's shape."""
        return json.loads(self.body)["error"]


def ask(home: Home, model: str, path: str = "/v1/chat/completions", method: str = "POST") -> Reply:
    """Asks as a client does."""
    connection = http.client.HTTPConnection(home.daemon.url.removeprefix("http://"), timeout=60)
    headers = {"authorization": f"Bearer {home.daemon.key}", "x-stoker-wait": "0"}  # waiting has tests of its own
    connection.request(method, path, BODY % model.encode() if method == "POST" else None, headers)
    reply = connection.getresponse()
    told = {name.lower(): value for name, value in reply.getheaders()}
    answer = Reply(reply.status, told, reply.read())
    connection.close()
    return answer


def models(home: Home) -> dict[str, Any]:
    """What `/v1/models` lists, by id."""
    return {one["id"]: one for one in json.loads(ask(home, "", "/v1/models", "GET").body)["data"]}


def await_answer(home: Home, model: str) -> Reply:
    """Asks until the answer is a whole one."""

    def answered() -> Reply | None:
        reply = ask(home, model)
        assert reply.status in (200, 503), reply
        return reply if reply.status == 200 else None

    return wait_for(f"an answer of {model}", answered)


def begin(home: Home) -> None:
    """Starts the daemon with the first service."""
    home.run("up", "first")


def launches(home: Home, service: str) -> int:
    """How often a service was launched, by the daemon's log."""
    return home.paths.daemon_log.read_text().count(f"service={service} state=STARTING")


def test_a_request_starts_a_service_that_was_never_started(home: Home) -> None:
    home.add_fake("first")
    folder = home.add_fake("small", ASKED + 'served_name = "small-1b"', gate=str(home.folder / "gate"))
    begin(home)
    listed = models(home)["small-1b"]
    assert (listed["state"], listed["on_demand"], listed["expected_s"]) == ("STOPPED", True, None)
    reply = ask(home, "small-1b")
    assert (reply.status, reply.error["src"]) == (503, "stoker")
    assert reply.headers["retry-after"] == "5"
    assert reply.headers["x-stoker-service"] == "small"
    wait_for("its owner", lambda: "small-1b" in models(home) and models(home)["small-1b"]["state"] == "LOADING")
    for _ in range(5):
        assert ask(home, "small-1b").error["code"] == "service_loading"
    (folder.parent / "gate").touch()
    answer = await_answer(home, "small-1b")
    assert answer.body.endswith(b"data: [DONE]\n\n")
    assert (answer.headers["x-stoker-service"], answer.headers["x-stoker-model"]) == ("small", "small-1b")
    assert launches(home, "small") == 1
    assert home.service("first").state is State.READY  # there was room for both


def test_a_service_without_on_demand_is_not_started_by_a_request(home: Home) -> None:
    home.add_fake("first")
    home.add_fake("quiet")
    begin(home)
    assert ask(home, "quiet").status == 404
    home.run("up", "quiet")
    home.run("down", "quiet")
    reply = ask(home, "quiet")
    assert (reply.status, reply.error["code"], reply.headers["retry-after"]) == (503, "service_stopped", "60")
    assert reply.headers["x-stoker-plan"] == home.service("quiet").plan_id
    assert len(reply.headers["x-stoker-revision"]) == 12
    assert launches(home, "quiet") == 1


def test_a_request_switches_within_a_group_after_the_residence_and_whole_answers_come_first(home: Home) -> None:
    home.configure(limits="switch_cooldown_s = 2")
    home.add_fake("first", GROUP + ASKED, stream_gate=str(home.folder / "go"))
    home.add_fake("second", GROUP + ASKED)
    begin(home)
    lines: list[bytes] = []
    body = {"model": "first", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    stream = home.daemon.stream("POST", "/v1/chat/completions", body)
    lines.append(next(stream))
    ask(home, "second")
    wait_for("the drain", lambda: home.service("first").state is State.DRAINING)
    (home.folder / "go").touch()
    lines += stream
    assert lines[-2:] == [b"data: [DONE]\n", b"\n"]
    assert await_answer(home, "second").headers["x-stoker-model"] == "second"
    assert home.service("first").why == "second takes its place"


def test_two_models_asked_for_in_turn_do_not_switch_with_every_request(home: Home) -> None:
    cooldown_s = 3.0
    home.configure(limits=f"switch_cooldown_s = {cooldown_s}")
    home.add_fake("first", GROUP + ASKED)
    home.add_fake("second", GROUP + ASKED)
    began = time.monotonic()
    begin(home)
    answers = {"first": 0, "second": 0}
    said = set()
    while min(answers.values()) < 3:
        for name in answers:
            reply = ask(home, name)
            if reply.status == 200:
                answers[name] += 1
            else:
                said.add(re.sub(r".*It waits for (.*?)\. Nothing.*", r"\1", reply.error["message"]))
    starts = launches(home, "first") + launches(home, "second")
    assert starts <= 2 + (time.monotonic() - began) / cooldown_s
    assert "first to have been up for 3 s (switch_cooldown_s)" in said


def test_a_workflow_that_holds_the_machine_is_not_disturbed(home: Home) -> None:
    home.add_fake("first")
    home.add_fake("small", ASKED)
    begin(home)
    with hold_run(home.paths, "podcast"):
        reply = ask(home, "small")
        assert (reply.status, reply.error["code"]) == (503, "start_refused")
        assert "the workflow `podcast` holds the machine" in reply.error["message"]
        assert launches(home, "small") == 0
    await_answer(home, "small")


def test_what_was_taken_down_by_hand_stays_down(home: Home) -> None:
    home.add_fake("first")
    home.add_fake("small", ASKED)
    begin(home)
    await_answer(home, "small")
    home.run("down", "small")
    reply = ask(home, "small")
    assert reply.error["code"] == "start_refused"
    assert "small was taken down by hand" in reply.error["message"]
    home.run("up", "small")
    assert ask(home, "small").status == 200


def test_a_start_that_fails_is_told_with_its_reason_and_not_tried_by_every_request(home: Home) -> None:
    home.add_fake("first")
    home.add_fake("broken", ASKED, dies="loading")
    begin(home)
    assert ask(home, "broken").status == 503
    reply = wait_for("the failure", lambda: (said := ask(home, "broken")).error["code"] == "start_failed" and said)
    assert "broken is FAILED: the engine ended (exit code 7)" in reply.error["message"]
    assert 1 <= int(reply.headers["retry-after"]) <= 10
    for _ in range(5):
        assert ask(home, "broken").error["code"] == "start_failed"
    assert launches(home, "broken") == 1


def test_a_start_for_which_no_room_can_be_made_is_refused_and_takes_nobody_down(home: Home) -> None:
    home.add_fake("first")
    home.add_fake("vast", ASKED + "claim_gib = 90000.0")
    begin(home)
    ask(home, "vast")
    reply = wait_for("the refusal", lambda: (said := ask(home, "vast")).error["code"] == "start_refused" and said)
    assert "vast" in reply.error["message"]
    assert home.service("first").state is State.READY
    assert launches(home, "vast") == 0


def test_an_idle_service_stops_and_the_next_request_brings_it_back_with_an_expected_time(home: Home) -> None:
    home.add_fake("first")
    home.add_fake("small", ASKED + "idle_s = 1.0")
    begin(home)
    await_answer(home, "small")
    wait_for("its stop", lambda: home.service("small").state is State.STOPPED)
    assert home.service("small").why == "nothing was asked of it for 1 s (idle_s)"
    assert home.service("first").state is State.READY
    assert models(home)["small"]["expected_s"] > 0
    await_answer(home, "small")
    assert launches(home, "small") == 2


def test_the_status_tells_which_services_come_and_go_by_themselves(home: Home) -> None:
    home.add_fake("first")
    begin(home)
    assert "demand" not in home.run("status").stdout
    home.add_fake("small", ASKED + "idle_s = 900.0")
    home.add_fake("quick", ASKED)
    home.add_fake("tidy", "idle_s = 0.5")
    wait_for("the new tables", lambda: len(home.daemon.status().doors) == 3)
    assert home.json("status")["doors"] == [
        {"service": "small", "on_demand": True, "idle_s": 900.0},
        {"service": "quick", "on_demand": True, "idle_s": None},
        {"service": "tidy", "on_demand": False, "idle_s": 0.5},
    ]
    assert home.run("status").stdout.splitlines()[-3:] == [
        "demand   small: a request starts it; it stops when nothing was asked of it for 900 s (idle_s)",
        "         quick: a request starts it",
        "         tidy: it stops when nothing was asked of it for 0.5 s (idle_s)",
    ]


def test_a_service_that_is_answering_is_not_idle(home: Home) -> None:
    home.add_fake("first", "idle_s = 0.5", stream_gate=str(home.folder / "go"))
    home.add_fake("second", ASKED + "idle_s = 0.5")
    begin(home)
    body = {"model": "first", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    stream = home.daemon.stream("POST", "/v1/chat/completions", body)
    next(stream)
    await_answer(home, "second")
    wait_for("the other's stop", lambda: home.service("second").state is State.STOPPED)
    assert home.service("first").state is State.READY
    (home.folder / "go").touch()
    assert list(stream)[-2:] == [b"data: [DONE]\n", b"\n"]
    wait_for("its stop", lambda: home.service("first").state is State.STOPPED)


def test_an_alias_is_answered_by_the_real_model_and_only_the_models_value_is_replaced(home: Home) -> None:
    kept = home.folder / "body"
    home.configure('[alias]\n"gpt-4o" = "small"\nfast = "first"\n')
    home.add_fake("first", 'served_name = "small-1b"', keeps=str(kept))
    home.add_fake("small", ASKED + 'served_name = "small-2b"')
    begin(home)
    reply = ask(home, "fast")
    assert (reply.status, reply.headers["x-stoker-model"]) == (200, "small-1b")
    assert reply.headers["x-stoker-filters"] == "alias"
    assert kept.read_bytes() == BODY % b"small-1b"
    assert "x-stoker-filters" not in ask(home, "small-1b").headers
    listed = models(home)
    assert (listed["fast"]["alias_of"], listed["fast"]["state"]) == ("small-1b", "READY")
    assert (listed["gpt-4o"]["alias_of"], listed["gpt-4o"]["state"]) == ("small-2b", "STOPPED")
    assert await_answer(home, "gpt-4o").headers["x-stoker-model"] == "small-2b"


def test_an_alias_for_whatever_runs_means_the_one_that_does(home: Home) -> None:
    home.configure('[alias]\nany = "*"\n')
    home.add_fake("first")
    home.add_fake("second")
    begin(home)
    assert ask(home, "any").headers["x-stoker-model"] == "first"
    assert models(home)["any"]["alias_of"] == "first"
    home.run("up", "second")
    reply = ask(home, "any")
    assert (reply.status, reply.error["code"]) == (400, "no_single_model")
    assert "`any` stands for the one model that is READY, and 2 are: `first`, `second`" in reply.error["message"]
    home.run("down", "first")
    assert ask(home, "any").headers["x-stoker-model"] == "second"
    home.run("down", "second")
    assert (ask(home, "any").status, "any" in models(home)) == (503, False)


@pytest.mark.parametrize("broken", ["[alias\n", '[service.x]\nmodel = "~nobody-here/m"\n'])
def test_stoker_toml_is_read_again_and_a_broken_one_is_told_of_once(home: Home, broken: str) -> None:
    home.add_fake("first")
    begin(home)
    text = home.paths.config.read_text()
    home.add_fake("small", ASKED)
    home.paths.config.write_text(home.paths.config.read_text() + '[alias]\nfast = "first"\n')
    wait_for("the alias", lambda: {"fast", "small"} <= models(home).keys())
    home.paths.config.write_text(text + broken)
    log = home.paths.daemon_log
    wait_for("the word of it", lambda: "what stoker.toml said before stands" in log.read_text())
    assert "stoker.toml cannot be used as it is now" in home.run("status").stdout
    assert ask(home, "fast").status == 200
    home.paths.config.write_text(text)
    wait_for("its end", lambda: "fast" not in models(home))
    assert ask(home, "fast").status == 404
    assert log.read_text().count("what stoker.toml said before stands") == 1


def test_a_request_stops_no_program_that_somebody_is_connected_to(home: Home) -> None:
    command = json.dumps((sys.executable, "-m", "http.server", "{port}", "--bind", "127.0.0.1"))
    table = f"program = {command}\nclaim_gib = 0.1\nready_line = 'Serving HTTP'\n{GROUP}"
    home.configure(f'[service.first]\nengine = "command"\n{table}', limits="switch_cooldown_s = 0")
    home.add_fake("second", GROUP + ASKED)
    home.run("up", "first", cwd=home.folder)
    address = home.service("first").address
    assert address is not None
    with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))):
        ask(home, "second")
        reply = wait_for("the refusal", lambda: (said := ask(home, "second")).error["code"] == "start_refused" and said)
        assert "first would have to stop, and it has connections at its port" in reply.error["message"]
    assert home.service("first").state is State.READY


def test_a_start_by_a_person_is_waited_for_and_not_begun_twice(home: Home) -> None:
    home.add_fake("first")
    home.add_fake("small", ASKED, gate=str(home.folder / "gate"))
    begin(home)
    home.daemon.up(read_config(home.paths.config).services["small"])
    wait_for("the wait", lambda: "It waits for its engine" in ask(home, "small").error["message"])
    (home.folder / "gate").touch()
    assert await_answer(home, "small").status == 200
    assert launches(home, "small") == 1


def test_the_next_daemon_knows_how_long_a_start_takes(home: Home) -> None:
    home.add_fake("small", ASKED)
    home.run("up", "small")
    home.kill_daemon()
    home.add_fake("first")
    begin(home)
    assert models(home)["small"]["expected_s"] is not None


def test_the_daemon_ends_while_a_start_for_a_request_waits(home: Home) -> None:
    home.configure(limits="switch_cooldown_s = 600")
    home.add_fake("first", GROUP)
    home.add_fake("second", GROUP + ASKED)
    begin(home)
    wait_for("the wait", lambda: "waits for first to have been up for 600 s" in ask(home, "second").error["message"])
    assert home.service("first").state is State.READY
    home.run("down")
    assert not home.daemon_answers
    assert "Traceback" not in home.paths.daemon_log.read_text()
