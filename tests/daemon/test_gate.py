"""The gate before READY, with an engine that lies: what fails it, what it keeps, and who has to pass it once more."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import pytest

from home import Home, wait_for
from lying_program import write_lies
from stoker.config import read_config
from stoker.records import ServiceView, State

GROUP = 'group = "models"'
LIMITS = "switch_cooldown_s = 0\nstop_grace_s = 0.5"


def last(home: Home, *words: str, code: int = 0) -> dict[str, Any]:
    """Returns what was found the last time."""
    kept: dict[str, Any] = json.loads(home.run("verify", "--last", *words, "--json", code=code).stdout)
    return kept


def checks(kept: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns the checks of what was found, by 'probe: check'."""
    probes = kept["verification"]["probes"]
    return {f"{probe['name']}: {check['name']}": check for probe in probes for check in probe["checks"]}


def await_gate(home: Home, name: str, probe: str) -> ServiceView:
    """Waits until a service's gate asks for a probe."""

    def asked() -> ServiceView | None:
        found = [one for one in home.daemon.status().services if one.name == name]
        return next((one for one in found if one.awaits and f"it proves {probe}" in one.awaits), None)

    return wait_for(f"the gate of {name} to ask for {probe}", asked)


@pytest.mark.parametrize(
    ("lie", "check", "says"),
    [
        ("says-nothing", "answers: tokens", "it answered HTTP 200 without a single token"),
        ("counts-nothing", "identity: counters", "vllm counted 0 requests of 3"),
        ("fallback-always", "identity: headers", "its headers say"),
        ("no-done", "streaming: order", "it ends without [DONE], and clients wait on"),
        ("call-as-text", "tools: auto", "the model writes a call, and the engine hands it on as text"),
        ("refuses-tools", "tools: auto", "required, and not offered: HTTP 400"),
        ("loses-deltas", "tools: streamed", "streamed: its arguments"),
    ],
)
def test_an_engine_that_fails_its_gate_is_not_ready_and_the_evidence_is_kept(
    home: Home, lie: str, check: str, says: str
) -> None:
    home.configure(limits=LIMITS)
    home.add_liar("liar", "", lie)
    said = home.run("up", "liar", code=1).stderr
    probe, _, name = check.partition(": ")
    assert f"liar is FAILED: it did not pass its gate: {probe} ({name}) says: {says}" in said
    assert "to mend it: " in said
    assert "`stoker verify --last liar` shows what was asked and answered" in said
    assert home.engines() == {}
    kept = last(home, "liar", code=1)
    assert (kept["occasion"], kept["plan_id"]) == ("gate", home.service("liar").plan_id)
    assert kept["required"] == ["answers", "identity", "streaming", "tools"]
    assert checks(kept)[check]["verdict"] == "fail"
    assert checks(kept)[check]["exchanges"]
    assert home.paths.engine_key_file.read_text().strip() not in json.dumps(kept)


def test_a_missing_parser_is_named_with_the_flag_to_add(home: Home) -> None:
    home.add_liar("liar", "", "refuses-tools", "writes-calls")
    said = home.run("up", "liar", code=1).stderr
    assert "to mend it: start it with `--enable-auto-tool-choice --tool-call-parser hermes`" in said


def test_what_nobody_can_tell_keeps_nothing_from_being_ready(home: Home) -> None:
    home.add_liar("busy", "", "counts-for-others")
    assert home.json("up", "busy")["state"] == "READY"
    found = checks(last(home, "busy"))["identity: counters"]
    assert found["verdict"] == "unknown"
    assert "others ask it too" in found["says"]


def test_only_what_a_service_requires_has_to_pass(home: Home) -> None:
    home.add_liar("some", 'gate = ["answers", "streaming"]', "refuses-tools", "counts-nothing")
    ready = home.json("up", "some")
    assert "its gate passed in" in ready["why"]
    assert ready["why"].endswith("(answers, streaming)")
    assert set(checks(last(home))) == {"answers: tokens", "answers: named", "streaming: order"}


def test_a_service_without_a_gate_is_asked_for_tokens_alone(home: Home) -> None:
    home.add_liar("none", "gate = []", "refuses-tools", "counts-nothing", "no-done")
    ready = home.json("up", "none")
    assert (ready["state"], "gate" in ready["why"]) == ("READY", False)
    assert "nothing is kept of any service" in home.run("verify", "--last", code=2).stderr


def test_a_probe_that_does_not_exist_is_refused_with_its_path_and_the_near_miss(home: Home) -> None:
    home.configure('[service.a]\nmodel = "/a.gguf"\ngate = ["answers", "tool"]')
    said = home.run("up", "demo", code=2).stderr
    assert "`service.a.gate`: there is no probe called `tool`" in said
    assert "did you mean `tools`?" in said


def test_a_switch_to_what_fails_its_gate_is_rolled_back(home: Home) -> None:
    home.configure(limits=LIMITS)
    home.add_liar("old", GROUP)
    home.add_liar("new", GROUP, "no-done")
    home.run("up", "old")
    said = home.run("switch", "new", code=1).stderr
    assert "it did not pass its gate: streaming (order) says" in said
    assert "old is READY again" in said
    assert home.service("old").state is State.READY
    assert home.service("new").state is State.FAILED
    assert {marker.split("/")[1] for marker in home.engines().values()} == {"old"}
    assert checks(last(home, "new", code=1))["streaming: order"]["verdict"] == "fail"


def test_rollback_prefers_the_last_plan_that_passed_its_gate(home: Home) -> None:
    home.configure(limits=LIMITS)
    home.add_liar("coder", "parallel = 1")
    gated = home.json("up", "coder")["plan_id"]
    text = home.paths.config.read_text()
    home.paths.config.write_text(text.replace("parallel = 1", "parallel = 2\ngate = []"))
    unproved = home.json("switch", "coder")["plan_id"]
    home.paths.config.write_text(text.replace("parallel = 1", "parallel = 3"))
    home.run("switch", "coder")
    assert home.service("coder").plan_id not in (gated, unproved)
    home.run("rollback", "coder")
    assert home.service("coder").plan_id == gated


def test_what_is_started_again_after_a_fault_is_asked_for_tokens_alone(home: Home) -> None:
    folder = home.add_liar("coder")
    first = home.json("up", "coder")
    write_lies(folder, "no-done")
    os.kill(first["pid"], signal.SIGKILL)
    home.await_state("coder", State.BACKOFF)
    again = home.await_state("coder", State.READY, State.FAILED)
    assert (again.state, again.restarts, "gate" in again.why) == (State.READY, 1, False)
    home.run("down", "coder")
    home.run("up", "coder", code=1)


def test_an_engine_that_was_ready_and_is_taken_back_is_asked_for_tokens_alone(home: Home) -> None:
    folder = home.add_liar("coder")
    first = home.json("up", "coder")
    write_lies(folder, "no-done")
    home.kill_daemon()
    again = home.json("up", "coder")
    assert (again["state"], again["pid"], "gate" in again["why"]) == ("READY", first["pid"], False)


def begin(home: Home, name: str) -> None:
    """Asks for a service without waiting for it; a daemon has to run."""
    home.daemon.up(read_config(home.paths.config).services[name])


def test_a_daemon_killed_during_the_gate_is_followed_by_one_that_asks_the_whole_gate(home: Home) -> None:
    folder = home.add_liar("coder", "", "waits-at get_weather")
    home.run("up", "demo")
    begin(home, "coder")
    pid = await_gate(home, "coder", "tools").pid
    home.kill_daemon()
    home.run("up", "demo")
    await_gate(home, "coder", "tools")
    write_lies(folder)
    again = home.await_state("coder", State.READY, State.FAILED)
    assert (again.state, again.pid) == (State.READY, pid)
    assert "its gate passed in" in again.why
    assert last(home, "coder")["verification"]["verdict"] == "pass"


def test_a_stop_during_the_gate_ends_the_engine_and_keeps_no_verdict(home: Home) -> None:
    home.configure(limits=LIMITS)
    home.add_liar("coder", "", "waits-at get_weather")
    home.run("up", "demo")
    begin(home, "coder")
    await_gate(home, "coder", "tools")
    [stopped] = home.json("down", "coder")
    assert stopped["state"] == "STOPPED"
    assert {marker.split("/")[1] for marker in home.engines().values()} == {"demo"}
    assert "nothing is kept of coder" in home.run("verify", "--last", "coder", code=2).stderr


@pytest.mark.parametrize(("text", "probe"), [("number 1", "identity, 2 of 4"), ("get_weather", "tools, 4 of 4")])
def test_an_engine_that_dies_at_its_gate_fails_with_what_it_was_asked(home: Home, text: str, probe: str) -> None:
    home.add_liar("coder", "", f"dies-at {text}")
    said = home.run("up", "coder", code=1).stderr
    assert f"the engine ended (exit code 9) while its gate asked for {probe}" in said
    assert home.engines() == {}


def test_a_gate_that_is_not_through_in_time_names_its_limit(home: Home) -> None:
    home.configure(limits=f"{LIMITS}\ngate_s = 1.5")
    home.add_liar("slow", "", "waits-at get_weather")
    said = home.run("up", "slow", code=4).stderr
    assert "its gate was not through within 1.5 s (gate_s)" in said
    kept = last(home, "slow", code=4)
    assert checks(kept)["tools: auto"]["verdict"] == "unknown"
