"""Switching between services of a group, with scripted engines: what stops, what comes, and what is gone back to."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from fake_engine import Script, write_fake_engine
from home import Home, wait_for
from stoker.config import read_config
from stoker.errors import Refused
from stoker.flows.switch import follow_switch
from stoker.records import State, SwitchView, Wish

GROUP = 'group = "models"'
NEVER = "/nonexistent/gate"


def set_up(home: Home, limits: str = "switch_cooldown_s = 0", **scripts: dict[str, Any]) -> None:
    """Writes a configuration with services of one group."""
    home.configure(limits=limits)
    for name, script in scripts.items():
        home.add_fake(name, GROUP, **script)


def wish_of(home: Home, name: str) -> Wish:
    """Returns the wish of a service in stoker.toml."""
    return read_config(home.paths.config).services[name]


def begin_switch(home: Home, name: str) -> SwitchView:
    """Begins a switch without waiting for its end."""
    return home.daemon.switch(wish_of(home, name))


def begin_load(home: Home, name: str) -> SwitchView:
    """Begins a switch and returns once its service loads."""
    view = begin_switch(home, name)
    wait_for("the service", lambda: any(one.name == name for one in home.daemon.status().services))
    home.await_state(name, State.LOADING)
    return view


def end_of(home: Home, view: SwitchView | None = None) -> SwitchView:
    """Follows a switch to its end."""
    return list(follow_switch(home.daemon, view or home.daemon.await_switch(0)))[-1]


def alive(home: Home) -> set[str]:
    """The services that have an engine."""
    return {marker.split("/")[1] for marker in home.engines().values()}


def test_a_switch_stops_the_one_of_its_group_and_starts_the_other(home: Home) -> None:
    set_up(home, a={}, b={})
    home.run("up", "a")
    said = home.run("switch", "b").stdout
    assert said.splitlines() == ["stops a", "starts b", "b is READY"]
    assert (home.service("a").state, home.service("a").why) == (State.STOPPED, "b takes its place")
    assert home.service("b").state is State.READY
    assert alive(home) == {"b"}


def test_what_is_of_no_group_of_it_stays(home: Home) -> None:
    set_up(home, a={}, b={})
    home.add_fake("beside")
    home.run("up", "beside")
    home.run("up", "a")
    view = home.json("switch", "b")
    assert (view["outcome"], view["goes"]) == ("ready", ["a"])
    assert alive(home) == {"b", "beside"}


def test_up_of_a_second_one_of_a_group_is_refused_with_the_next_step(home: Home) -> None:
    set_up(home, a={}, b={})
    home.run("up", "a")
    said = home.run("up", "b", code=3).stderr
    assert "a is up, and of the group `models` only one may be" in said
    assert "`stoker switch b` stops it first; `stoker down a` does so alone" in said
    assert alive(home) == {"a"}


def test_of_two_that_are_asked_for_at_once_one_is_refused(home: Home) -> None:
    set_up(home, a={}, b={}, c={}, d={})
    home.add_fake("other")
    home.run("up", "other")
    daemon, names = home.daemon, ("a", "b", "c", "d")
    barrier = threading.Barrier(len(names))

    def ask(name: str) -> str | None:
        barrier.wait()
        try:
            return daemon.up(wish_of(home, name)).name
        except Refused:
            return None

    with ThreadPoolExecutor(len(names)) as pool:
        came = [name for name in pool.map(ask, names) if name]
    assert len(came) == 1
    home.await_state(came[0], State.READY)
    assert alive(home) == {"other", *came}


@contextmanager
def streaming(home: Home, model: str) -> Iterator[list[bytes]]:
    """Asks a question whose answer has begun; at the end it was read whole."""
    lines: list[bytes] = []
    body = {"model": model, "stream": True, "messages": [{"role": "user", "content": "Go on"}]}

    thread = threading.Thread(target=read_into, args=(home, body, lines))
    thread.start()
    wait_for("the first token", lambda: any(b"token0" in line for line in lines))
    yield lines
    thread.join(60)
    assert not thread.is_alive()


def read_into(home: Home, body: dict[str, Any], lines: list[bytes]) -> None:
    """Collects the lines of a streamed answer as they come."""
    for line in home.daemon.stream("POST", "/v1/chat/completions", body):
        lines.append(line)  # noqa: PERF402 - another thread looks at what has come


def ask_raw(home: Home, model: str) -> tuple[int, dict[str, str], Any]:
    """Asks as a client would; returns status, headers and body."""
    daemon = home.daemon
    connection = http.client.HTTPConnection(urlsplit(daemon.url).netloc, timeout=30)
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "Hello?"}]})
    headers = {"authorization": f"Bearer {daemon.key}", "content-type": "application/json"}
    connection.request("POST", "/v1/chat/completions", body, headers)
    reply = connection.getresponse()
    told = {name.lower(): value for name, value in reply.getheaders()}
    answer = json.loads(reply.read())
    connection.close()
    return reply.status, told, answer


def test_requests_in_flight_are_finished_and_new_ones_told_when_to_come_back(home: Home) -> None:
    gate = home.folder / "gate"
    set_up(home, a={"stream_gate": str(gate)}, b={})
    home.run("up", "a")
    with streaming(home, "a") as lines:
        view = begin_switch(home, "b")
        home.await_state("a", State.DRAINING)
        status, headers, body = ask_raw(home, "a")
        assert (status, headers["retry-after"]) == (503, "5")
        assert body["error"]["code"] == "service_draining"
        assert "`a` is not ready: DRAINING, b takes its place" in body["error"]["message"]
        assert set(body["error"]) == {"message", "type", "param", "code", "src"}
        assert ask_raw(home, "b")[0] in (404, 503)
        gate.touch()
    assert any(b"token2" in line for line in lines)
    assert lines[-2:] == [b"data: [DONE]\n", b"\n"]
    assert end_of(home, view).outcome == "ready"
    assert ask_raw(home, "a")[1]["retry-after"] == "60"


def test_requests_that_do_not_end_in_time_are_cut(home: Home) -> None:
    set_up(home, "switch_cooldown_s = 0\ndrain_s = 0.2", a={"stream_gate": NEVER}, b={})
    home.run("up", "a")
    with streaming(home, "a") as lines:
        home.run("switch", "b")
    assert lines[-1] != b"data: [DONE]\n"
    assert any(b"token1" in line for line in lines)


@pytest.mark.parametrize(
    ("script", "code", "says"),
    [
        ({"status": 500}, 1, "HTTP 500"),
        ({"dies": "loading"}, 1, "exit code 7"),
        ({"gate": NEVER}, 4, "did not load within 5 s (load_s)"),
    ],
)
def test_one_that_fails_gives_way_to_what_ran_before(home: Home, script: dict[str, Any], code: int, says: str) -> None:
    set_up(home, "switch_cooldown_s = 0\nload_s = 5", a={}, b=script)
    home.run("up", "a")
    done = home.run("switch", "b", code=code)
    assert "b did not take its place" in done.stderr
    assert says in done.stderr
    assert "a is READY again" in done.stderr
    assert "rolls back to a, since b is FAILED" in done.stdout
    assert (home.service("a").state, home.service("b").state) == (State.READY, State.FAILED)
    assert alive(home) == {"a"}


def test_a_way_back_that_fails_too_is_told_whole(home: Home) -> None:
    set_up(home, a={}, b={"status": 500})
    home.run("up", "a")
    write_fake_engine(home.folder / "a", Script(dies="loading"))
    said = home.run("switch", "b", code=1).stderr
    assert "b is FAILED" in said
    assert "; and a is FAILED" in said
    assert "READY again" not in said
    assert alive(home) == set()


def test_a_failed_switch_where_nothing_ran_before_has_nothing_to_go_back_to(home: Home) -> None:
    set_up(home, b={"status": 500})
    fault = json.loads(home.run("switch", "b", "--json", code=1).stdout)["fault"]
    assert fault["what"] == "b did not take its place"
    assert "rolls back" not in fault["why"]
    view = end_of(home)
    assert (view.outcome, view.goes, view.exit_code, view.steps) == ("failed", (), 1, ("starts b",))


def test_what_was_down_is_not_what_a_switch_goes_back_to(home: Home) -> None:
    gate = home.folder / "gate"
    set_up(home, a={}, b={"status": 500, "gate": str(gate)})
    home.run("up", "a")
    view = begin_load(home, "b")
    home.run("down", "a")
    gate.touch()
    ended = end_of(home, view)
    assert ended.outcome == "failed"
    assert "READY again" not in ended.why
    assert alive(home) == set()


def test_a_switch_right_after_another_waits_and_says_why(home: Home) -> None:
    set_up(home, "switch_cooldown_s = 4", a={}, b={})
    home.run("up", "a")
    home.run("switch", "b")
    said = home.run("switch", "a").stdout.splitlines()
    assert re.fullmatch(r"waits [1-4] s: the last switch has only just ended \(switch_cooldown_s\)", said[0])
    assert said[1:] == ["stops b", "starts a", "a is READY"]


def test_who_has_to_stop_is_judged_anew_after_the_cool_down(home: Home) -> None:
    set_up(home, "switch_cooldown_s = 4", a={}, b={}, c={})
    home.run("switch", "b")
    view = begin_switch(home, "c")
    assert view.goes == ("b",)
    home.daemon.down("b")  # not by the command: on a busy machine it begins after the cool-down is over
    ended = end_of(home, view)
    assert (ended.outcome, ended.goes) == ("ready", ())
    assert alive(home) == {"c"}


def test_down_of_what_a_switch_is_about_to_start_is_not_undone(home: Home) -> None:
    set_up(home, "switch_cooldown_s = 4", a={}, b={})
    home.run("up", "b")
    home.run("switch", "a")
    home.run("down", "a")
    view = begin_switch(home, "b")
    home.daemon.down("b")  # not by the command: on a busy machine it begins after the cool-down is over
    ended = end_of(home, view)
    assert (ended.outcome, ended.why) == ("failed", "b was asked to stop meanwhile")
    assert alive(home) == set()


def test_a_second_switch_while_one_is_under_way_is_refused(home: Home) -> None:
    gate = home.folder / "gate"
    set_up(home, a={}, b={"gate": str(gate)}, c={})
    home.run("up", "a")
    view = begin_load(home, "b")
    said = home.run("switch", "c", code=3).stderr
    assert "a switch to b is under way" in said
    gate.touch()
    assert end_of(home, view).outcome == "ready"
    assert alive(home) == {"b"}


def test_what_makes_room_cannot_be_started_meanwhile(home: Home) -> None:
    gate = home.folder / "gate"
    set_up(home, a={"stream_gate": str(gate)}, b={}, c={})
    home.run("up", "a")
    with streaming(home, "a"):
        view = begin_switch(home, "b")
        home.await_state("a", State.DRAINING)
        for name in ("a", "c"):
            said = home.run("up", name, code=3).stderr
            assert f"a switch to b is under way, and {name} makes room for it" in said
        gate.touch()
    assert end_of(home, view).outcome == "ready"
    assert alive(home) == {"b"}


def test_a_switch_to_what_is_ready_changes_nothing(home: Home) -> None:
    set_up(home, "switch_cooldown_s = 60", a={}, b={})
    before = home.json("up", "a")
    for _ in range(2):
        assert home.run("switch", "a").stdout == "a is READY already\n"
    assert home.service("a").pid == before["pid"]
    view = begin_switch(home, "b")
    assert view.waits_until is None
    assert end_of(home, view).outcome == "ready"


def test_who_followed_a_switch_hears_of_its_end_even_if_the_next_has_begun(home: Home) -> None:
    set_up(home, a={}, b={})
    home.run("up", "a")
    first = begin_switch(home, "b")
    end_of(home, first)
    second = begin_switch(home, "a")
    end_of(home, second)
    assert home.daemon.await_switch(0, first.since).service == "b"
    assert home.daemon.await_switch(0).service == "a"


def restart_daemon(home: Home) -> None:
    """Brings a new daemon up, by a service that has nothing to do with the others."""
    home.add_fake("bystander")
    home.run("up", "bystander")


def check_b_took_over(home: Home) -> None:
    """Checks that an interrupted switch to b was brought to its end."""
    home.await_state("b", State.READY)
    assert end_of(home).outcome == "ready"
    assert "goes on with the switch to b" in end_of(home).steps[0]
    assert home.service("a").state is State.STOPPED
    assert alive(home) == {"b", "bystander"}


def test_a_daemon_killed_while_the_first_one_stops_goes_on_with_the_switch(home: Home) -> None:
    set_up(home, "switch_cooldown_s = 0\nstop_grace_s = 60", a={"ignores_term": True}, b={})
    home.run("up", "a")
    begin_switch(home, "b")
    home.await_state("a", State.STOPPING)
    home.kill_daemon()
    assert alive(home) == {"a"}
    home.paths.config.write_text(home.paths.config.read_text().replace("stop_grace_s = 60", "stop_grace_s = 0.2"))
    restart_daemon(home)
    check_b_took_over(home)


def test_a_daemon_killed_while_the_second_one_loads_goes_on_with_the_switch(home: Home) -> None:
    gate = home.folder / "gate"
    set_up(home, a={}, b={"gate": str(gate)})
    home.run("up", "a")
    begin_load(home, "b")
    pid = home.service("b").pid
    home.kill_daemon()
    restart_daemon(home)
    gate.touch()
    check_b_took_over(home)
    assert home.service("b").pid == pid


def test_a_daemon_killed_while_the_second_one_fails_goes_back_to_the_first(home: Home) -> None:
    gate = home.folder / "gate"
    set_up(home, a={}, b={"gate": str(gate), "status": 500})
    home.run("up", "a")
    begin_load(home, "b")
    home.kill_daemon()
    restart_daemon(home)
    gate.touch()
    home.await_state("a", State.READY)
    assert end_of(home).outcome == "rolled back"
    assert alive(home) == {"a", "bystander"}


def test_a_daemon_killed_on_the_way_back_goes_on_with_it(home: Home) -> None:
    gate = home.folder / "gate"
    set_up(home, a={}, b={"status": 500})
    home.run("up", "a")
    write_fake_engine(home.folder / "a", Script(gate=str(gate)))
    begin_switch(home, "b")
    wait_for("the way back", lambda: home.daemon.await_switch(0).steps[-1] == "starts a")
    home.await_state("a", State.LOADING)
    home.kill_daemon()
    restart_daemon(home)
    gate.touch()
    home.await_state("a", State.READY)
    ended = end_of(home)
    assert ended.outcome == "rolled back"
    assert ended.steps[1].startswith("rolls back to a, since b is FAILED")
    assert "starts b" not in ended.steps
    assert alive(home) == {"a", "bystander"}


def test_a_daemon_told_to_end_in_the_middle_lets_the_next_one_go_on(home: Home) -> None:
    gate = home.folder / "gate"
    set_up(home, "switch_cooldown_s = 0\ndrain_s = 60", a={"stream_gate": str(gate)}, b={})
    home.run("up", "a")
    with streaming(home, "a"):
        begin_switch(home, "b")
        home.await_state("a", State.DRAINING)
        pid = home.daemon_pid
        assert pid is not None
        os.kill(pid, signal.SIGTERM)
        wait_for("the door to close", lambda: not home.daemon_answers)
        gate.touch()
    wait_for("the daemon's end", lambda: home.daemon_pid is None)
    assert home.engines() == {}
    restart_daemon(home)
    check_b_took_over(home)


def test_down_of_everything_ends_a_switch_for_good(home: Home) -> None:
    set_up(home, a={}, b={"gate": NEVER})
    home.run("up", "a")
    begin_load(home, "b")
    home.run("down")
    assert home.engines() == {}
    restart_daemon(home)
    assert {home.service(name).state for name in ("a", "b")} == {State.STOPPED}
    assert alive(home) == {"bystander"}


def test_down_without_a_daemon_ends_a_switch_for_good(home: Home) -> None:
    set_up(home, a={}, b={"gate": NEVER})
    home.run("up", "a")
    begin_load(home, "b")
    home.kill_daemon()
    assert "Ended without it: b" in home.run("down").stdout
    restart_daemon(home)
    assert {home.service(name).state for name in ("a", "b")} == {State.STOPPED}
    assert alive(home) == {"bystander"}


def test_down_right_after_a_restart_is_not_undone_by_it(home: Home) -> None:
    set_up(home, a={"orphan": True, "ignores_term": True}, limits="stop_grace_s = 1")
    view = home.json("up", "a")
    home.kill_daemon()
    os.kill(view["pid"], signal.SIGKILL)
    argv = [sys.executable, "-m", "stoker", "serve"]
    with subprocess.Popen(argv, env=home.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        wait_for("the daemon", lambda: home.daemon_answers)
        home.run("down", "a")
        assert home.service("a").state is State.STOPPED
        assert home.engines() == {}
        home.run("down")


def test_rollback_brings_the_former_plan_back(home: Home) -> None:
    set_up(home, a={})
    first = home.json("up", "a")
    second = home.json("up", "a", "--parallel", "2")
    assert first["plan_id"] != second["plan_id"]
    assert home.run("rollback", "a").stdout.splitlines() == ["starts a", "a is READY"]
    assert home.service("a").plan_id == first["plan_id"]
    assert len(home.engines()) == 1


def test_rollback_outlives_the_daemon(home: Home) -> None:
    set_up(home, a={})
    first = home.json("up", "a")
    home.run("up", "a", "--parallel", "2")
    home.kill_daemon()
    home.run("rollback", "a")
    assert home.service("a").plan_id == first["plan_id"]


def test_rollback_outlives_a_down_without_a_daemon(home: Home) -> None:
    set_up(home, a={})
    first = home.json("up", "a")
    home.run("up", "a", "--parallel", "2")
    home.kill_daemon()
    home.run("down")
    home.run("rollback", "a")
    assert home.service("a").plan_id == first["plan_id"]


def test_rollback_after_a_plan_that_failed(home: Home) -> None:
    set_up(home, a={})
    first = home.json("up", "a")
    write_fake_engine(home.folder / "a", Script(status=500))
    home.run("up", "a", "--parallel", "2", code=1)
    write_fake_engine(home.folder / "a", Script())
    home.run("rollback", "a")
    assert home.service("a").plan_id == first["plan_id"]


def test_rollback_without_a_former_plan_is_refused(home: Home) -> None:
    set_up(home, a={})
    home.run("up", "a")
    assert "a was never READY by another plan" in home.run("rollback", "a", code=3).stderr


def test_a_switch_to_another_plan_of_the_same_service_goes_back_to_the_one_that_ran(home: Home) -> None:
    set_up(home, a={})
    before = home.json("up", "a")
    text = home.paths.config.read_text()
    bad = write_fake_engine(home.folder / "bad", Script(status=500))
    home.paths.config.write_text(text.replace(str(home.folder / "a" / "fake-llama-server"), str(bad)))
    said = home.run("switch", "a", code=1).stderr
    assert "a is READY again" in said
    assert home.service("a").plan_id == before["plan_id"]


def test_the_way_from_one_of_a_group_to_the_next_holds_for_a_chain(home: Home) -> None:
    set_up(home, a={}, b={}, c={})
    home.run("up", "a")
    for name in ("b", "c", "a", "b"):
        home.run("switch", name)
        assert alive(home) == {name}


def test_a_switch_to_an_unknown_service_is_wrong_use(home: Home) -> None:
    assert "no service called `nosuch`" in home.run("switch", "nosuch", code=2).stderr
