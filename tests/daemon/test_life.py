"""The life of a service whose engine misbehaves, with a scripted engine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from typing import Any

import psutil
import pytest

from home import Home, wait_for
from stoker.config import demo_model
from stoker.records import MIB, State


def start(home: Home, name: str, *options: str) -> subprocess.Popen[str]:
    """Begins `stoker up NAME` and returns without waiting for it."""
    argv = [sys.executable, "-m", "stoker", "up", name, *options]
    return subprocess.Popen(argv, env=home.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def await_daemon(home: Home) -> None:
    """Waits until a daemon answers and knows a service."""
    wait_for("the daemon", lambda: home.daemon_pid)
    wait_for("a service", lambda: home.run("status", "--json", code=None).stdout.count('"state"') or None)


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ({"status": 500}, "HTTP 500"),
        ({"tokens": 0}, "without a single token"),
        ({"says_model": "other-model"}, "it says that other-model answered"),
        ({"dies": "proving"}, "exit code 9"),
    ],
)
def test_an_engine_that_lies_about_being_ready_never_becomes_ready(home: Home, script: dict[str, Any], says: str) -> None:
    home.add_fake("liar", **script)
    said = home.run("up", "liar", code=1)
    assert "liar is FAILED" in said.stderr
    assert says in said.stderr
    assert " READY" not in said.stdout
    assert home.engines() == {}


def test_a_model_that_thinks_first_has_answered_and_its_thoughts_are_shown(home: Home) -> None:
    home.add_fake("thinker", thinks=True)
    home.run("up", "thinker")
    assert home.service("thinker").state is State.READY
    told = home.json("ask", "--model", home.service("thinker").model, "Who are you?")
    assert (told["answer"], told["thoughts"]) == ("", "token0 token1 token2 ")


def test_an_engine_that_dies_while_loading_fails_with_its_last_words(home: Home) -> None:
    home.add_fake("brief", dies="loading", prints="error loading model: the planets are wrong")
    said = home.run("up", "brief", code=1).stderr
    assert "exit code 7" in said
    assert "no rule explains it; it said: error loading model: the planets are wrong" in said
    assert "stoker logs brief" in said
    assert home.service("brief").state is State.FAILED


def test_an_engine_that_does_not_load_in_time_is_ended(home: Home) -> None:
    home.configure(limits="load_s = 0.3")
    home.add_fake("slow", gate="/nonexistent/gate")
    said = home.run("up", "slow", code=4).stderr
    assert "did not load within 0.3 s (load_s)" in said
    assert home.engines() == {}


def test_a_stop_while_loading_ends_the_engine(home: Home) -> None:
    home.add_fake("slow", gate="/nonexistent/gate")
    with start(home, "slow") as up:
        await_daemon(home)
        home.await_state("slow", State.LOADING)
        home.run("down", "slow")
        up.wait(60)
        assert up.stdout is not None
        assert "slow is STOPPED" in up.stdout.read()
    assert home.engines() == {}


def test_one_that_ignores_sigterm_while_it_loads_is_not_waited_for_as_long_as_one_that_serves(home: Home) -> None:
    home.configure(limits="stop_grace_s = 600")
    home.add_fake("slow", gate="/nonexistent/gate", ignores_term=True)
    with start(home, "slow") as up:
        await_daemon(home)
        home.await_state("slow", State.LOADING)
        home.run("down", "slow")  # which gives up long before the grace is over
        up.wait(60)
    assert home.engines() == {}


def test_an_engine_that_ignores_sigterm_is_killed(home: Home) -> None:
    home.configure(limits="stop_grace_s = 0.2")
    home.add_fake("stubborn", ignores_term=True)
    home.run("up", "stubborn")
    home.run("down", "stubborn")
    assert home.engines() == {}


def test_a_child_in_a_session_of_its_own_is_ended_too(home: Home) -> None:
    home.add_fake("parent", orphan=True)
    home.run("up", "parent")
    assert len(home.engines()) == 2
    home.run("down", "parent")
    assert home.engines() == {}


def test_an_engine_that_dies_when_ready_is_started_again_within_its_budget(home: Home) -> None:
    home.configure(limits="restarts = 2")
    home.add_fake("mortal")
    first = home.json("up", "mortal")
    os.kill(first["pid"], signal.SIGKILL)
    home.await_state("mortal", State.BACKOFF)
    second = home.await_state("mortal", State.READY)
    assert second.pid not in (None, first["pid"])
    assert second.restarts == 1
    assert second.pid is not None
    os.kill(second.pid, signal.SIGKILL)
    home.await_state("mortal", State.BACKOFF)
    third = home.await_state("mortal", State.READY)
    assert third.pid is not None
    os.kill(third.pid, signal.SIGKILL)
    failed = home.await_state("mortal", State.FAILED)
    assert "killed by SIGKILL" in failed.why
    assert home.engines() == {}


def test_the_children_of_an_engine_that_died_are_ended(home: Home) -> None:
    home.configure(limits="restarts = 0")
    home.add_fake("parent", orphan=True)
    view = home.json("up", "parent")
    os.kill(view["pid"], signal.SIGKILL)
    home.await_state("parent", State.FAILED)
    assert home.engines() == {}


def test_a_taken_port_is_named_with_who_took_it(home: Home) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        home.add_fake("late", f"port = {port}")
        said = home.run("up", "late", code=3).stderr
    assert said.count(f"port {port} is taken by") == 1
    assert f"(pid {os.getpid()})" in said
    assert "next: end it, or give late another port" in said
    assert "stoker logs" not in said, "nothing was started, so there is nothing to read"


def test_why_a_start_failed_is_told_once(home: Home) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        home.add_fake("late", f"port = {port}")
        done = home.run("up", "late", code=3)
    assert (done.stdout + done.stderr).count("is taken by") == 1


def test_what_can_never_fit_is_refused_with_who_holds_the_memory(home: Home) -> None:
    home.configure(limits=f"memory_floor_bytes = {2**50}")
    home.add_fake("huge")
    said = home.run("up", "huge", code=3).stderr
    assert "does not fit in this machine" in said
    assert "needed and 1048576.0 GiB kept for the system" in said
    assert "most is held by:" in said
    assert home.engines() == {}


def test_a_start_that_lacks_memory_waits_for_it_and_gives_up_at_its_limit(home: Home) -> None:
    floor_bytes = home.json("facts")["memory"]["total_bytes"] - 400 * MIB  # it would fit an empty machine, and no other
    home.configure(limits=f"memory_wait_s = 0.5\nmemory_floor_bytes = {floor_bytes}")
    home.add_fake("patient")
    said = home.run("up", "patient", code=4)
    assert "WAITING_FOR_MEMORY" in said.stdout
    assert "no room within 0.5 s (memory_wait_s)" in said.stderr


def test_two_starts_at_once_give_one_engine(home: Home) -> None:
    home.add_fake("one")
    home.run("up", "one")
    home.run("down", "one")
    with start(home, "one") as first, start(home, "one") as second:
        assert first.wait(60) == 0
        assert second.wait(60) == 0
    assert len(home.engines()) == 1


def test_a_restart_by_a_new_wish_waits_for_the_old_engine_to_be_gone(home: Home) -> None:
    home.configure(limits="stop_grace_s = 0.3")
    home.add_fake("changing", ignores_term=True)
    first = home.json("up", "changing")
    second = home.json("up", "changing", "--parallel", "2")
    assert second["pid"] != first["pid"]
    assert list(home.engines()) == [second["pid"]]


def test_an_engine_that_sends_nonsense_fails_and_the_daemon_lives(home: Home) -> None:
    home.add_fake("odd", event={"choices": [{"delta": None}]})
    home.add_fake("stranger", event=["not", "an", "object"])
    for name in ("odd", "stranger"):
        said = home.run("up", name, code=1).stderr
        assert f"{name} is FAILED" in said
        assert "an event that is not OpenAI's" in said or "without a single token" in said
    assert home.daemon_pid is not None


def test_one_service_is_started_at_a_time(home: Home) -> None:
    gate = home.folder / "gate"
    home.add_fake("first", gate=str(gate))
    home.add_fake("second")
    with start(home, "first") as first:
        await_daemon(home)
        home.await_state("first", State.LOADING)
        with start(home, "second") as second:
            wait_for("the second to come", lambda: any(view.name == "second" for view in home.daemon.status().services))
            waiting = home.await_state("second", State.WAITING_FOR_MEMORY)
            assert waiting.awaits == "its turn; one service is started at a time"
            gate.touch()
            assert first.wait(60) == 0
            assert second.wait(60) == 0


def test_a_start_that_is_given_up_lets_the_next_one_begin(home: Home) -> None:
    home.add_fake("first", gate="/nonexistent/gate")
    home.add_fake("second")
    with start(home, "first") as first:
        await_daemon(home)
        home.await_state("first", State.LOADING)
        with start(home, "second") as second:
            home.run("down", "first")
            assert second.wait(60) == 0
        first.wait(60)


def test_another_wish_while_waiting_for_memory_is_the_one_that_counts(home: Home) -> None:
    floor_bytes = home.json("facts")["memory"]["total_bytes"] - 400 * MIB  # it would fit an empty machine, and no other
    home.configure(limits=f"memory_wait_s = 60\nmemory_floor_bytes = {floor_bytes}")
    home.add_fake("big")
    with start(home, "big") as first:
        await_daemon(home)
        before = home.await_state("big", State.WAITING_FOR_MEMORY)
        with start(home, "big", "--parallel", "1") as second:
            changed = wait_for("the new plan", lambda: plan_of(home, "big") not in (None, before.plan_id))
            assert changed
            assert home.service("big").memory_need_bytes < before.memory_need_bytes
            home.run("down", "big")
            second.wait(60)
        first.wait(60)


def plan_of(home: Home, name: str) -> str | None:
    """Returns the id of the plan by which a service waits for memory, or None in another state."""
    view = home.service(name)
    return view.plan_id if view.state is State.WAITING_FOR_MEMORY else None


def test_a_program_that_is_slow_to_tell_its_version_holds_nobody_up(home: Home) -> None:
    folder = home.add_fake("slow")
    gate = folder / "gate"
    program = folder / "fake-llama-server"
    wait = f"import os, time\nwhile '--version' in sys.argv and not os.path.exists({str(gate)!r}): time.sleep(0.01)\n"
    program.write_text(program.read_text().replace("import sys\n", f"import sys\n{wait}", 1))
    home.add_fake("quick")
    home.run("up", "quick")
    with start(home, "slow") as slow:
        wait_for("the question", lambda: asks_for_version(str(program)))
        assert home.service("quick").state is State.READY
        gate.touch()
        assert slow.wait(60) == 0


def asks_for_version(program: str) -> bool:
    """Tells whether the program is being asked for its version just now."""
    lines = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    return any(program in line and "--version" in line for line in lines)


def test_a_model_file_that_was_replaced_is_not_started_under_its_old_revision(home: Home) -> None:
    model = home.folder / "m.gguf"
    model.write_bytes(demo_model().read_bytes())
    view = home.json("up", str(model))
    changed = bytearray(demo_model().read_bytes())
    changed[-4096:] = bytes(4096)
    (home.folder / "new.gguf").write_bytes(changed)
    (home.folder / "new.gguf").rename(model)
    os.kill(view["pid"], signal.SIGKILL)
    failed = home.await_state("m", State.FAILED)
    assert "is not the file that was planned for" in failed.why
    assert home.json("up", str(model))["plan_id"] != view["plan_id"]


def test_a_stuck_daemon_is_named_and_not_called_absent(home: Home) -> None:
    home.run("up")
    pid = home.daemon_pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        assert f"(pid {pid}) holds the state folder and does not answer" in home.run("status").stdout
        assert f"kill -9 {pid}" in home.run("down", code=3).stderr
    finally:
        os.kill(pid, signal.SIGCONT)


def test_what_the_daemon_writes_is_for_its_user_alone(home: Home) -> None:
    home.paths.state.mkdir(mode=0o755)
    home.run("up")
    assert home.paths.state.stat().st_mode & 0o077 == 0
    files = [file for file in home.paths.state.rglob("*") if file.name != "daemon.log"]
    assert all(file.stat().st_mode & 0o077 == 0 for file in files), [str(file) for file in files]


def ask(home: Home, model: str) -> subprocess.Popen[str]:
    """Begins to ask and returns without waiting for the answer."""
    argv = [sys.executable, "-m", "stoker", "ask", "--model", model, "hello"]
    return subprocess.Popen(argv, env=home.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_an_engine_that_has_requests_and_does_nothing_about_them_is_started_anew(home: Home) -> None:
    home.configure(limits="frozen_s = 0.5")
    home.add_fake("mute", hangs_after=1)
    before = home.json("up", "mute")
    with ask(home, "mute") as client:
        wait_for("another engine", lambda: home.service("mute").pid not in (None, before["pid"]))
        assert "broke" in client.communicate(timeout=60)[0]
    assert home.await_state("mute", State.READY).restarts == 1
    assert "it froze: 1 requests run" in (home.paths.state / "daemon.log").read_text()
