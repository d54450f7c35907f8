"""The default service comes back by itself when nothing is asked of others; with real services."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

from home import Home, wait_for
from stoker.config import demo_model
from stoker.records import IdleView, State

IDLE = '[idle]\ndefault_service = "chat"\nidle_s = 1.0\n'
LONG = '[idle]\ndefault_service = "chat"\nidle_s = 3600.0\n'
LLM = f'[service.chat]\nmodel = "{demo_model()}"\nserved_name = "small"\nreasoning = "off"\ngroup = "one"\n'


def comfy(folder: Path, port: str = "") -> str:
    """Returns a service in the default's place that is asked without the gateway."""
    folder.mkdir(exist_ok=True)
    command = (sys.executable, "-m", "http.server", "{port}", "--bind", "127.0.0.1", "--directory", str(folder))
    keys = f"program = {json.dumps(command)}\nclaim_gib = 0.1\nready_line = 'Serving HTTP'\ngroup = 'one'\n{port}"
    return f'[service.comfy]\nengine = "command"\n{keys}\n'


def begin(home: Home, idle: str) -> None:
    """Brings up the default service, then the other in its place."""
    home.configure(LLM + comfy(home.folder / "www") + idle, limits="switch_cooldown_s = 0")
    home.run("up", "chat")
    home.run("switch", "comfy")


def idle_of(home: Home) -> IdleView:
    """What the daemon says of the default service."""
    view = home.daemon.status().idle
    assert view is not None
    return view


def test_the_default_service_comes_back_when_nothing_is_asked(home: Home) -> None:
    home.limit_s = 150.0  # its port may have been another test's, whose connections the kernel keeps for a minute
    begin(home, IDLE)
    home.await_state("chat", State.READY)
    assert home.service("comfy").state is State.STOPPED
    assert idle_of(home).why == "chat is up"
    assert "service=chat comes back: nothing is asked of comfy (idle_s = 1)" in home.paths.daemon_log.read_text()


def test_status_says_when_it_comes_back_and_why(home: Home) -> None:
    begin(home, LONG)
    view = idle_of(home)
    since = home.service("comfy").since
    assert view.returns_at is not None
    assert view.returns_at >= since + 3600
    assert "default  chat comes back in 59 min: nothing is asked of comfy (idle_s = 3600)" in home.run("status").stdout


def test_a_connection_to_a_commands_own_port_keeps_it_up(home: Home) -> None:
    begin(home, LONG)
    address = home.service("comfy").address
    assert address is not None
    with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))):
        assert idle_of(home) == IdleView("chat", None, "comfy has connections at its port")
        assert "default  chat: comfy has connections" in home.run("status").stdout


def test_a_short_request_to_a_command_counts_as_use(home: Home) -> None:
    begin(home, LONG)
    address = home.service("comfy").address
    assert address is not None
    assert idle_of(home).returns_at is not None
    with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))) as asker:
        asker.sendall(b"GET / HTTP/1.0\r\n\r\n")
        while asker.recv(4096):
            pass
    assert idle_of(home).why == "comfy has connections at its port"


def test_no_return_while_a_workflow_runs_and_one_after_its_end(home: Home) -> None:
    gate = home.folder / "gate"
    waits = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.01)"
    command = json.dumps((sys.executable, "-c", waits, str(gate)))
    text = f'[[workflow.draw.step]]\nname = "draw"\nservice = "comfy"\ncommand = {command}\n'
    home.configure(LLM + comfy(home.folder / "www") + IDLE + text, limits="switch_cooldown_s = 0")
    home.run("up", "chat")
    argv = [sys.executable, "-m", "stoker", "run", "draw"]
    with subprocess.Popen(argv, env=home.environment, stdout=subprocess.DEVNULL) as run:
        try:
            wait_for("the other service", lambda: any(view.name == "comfy" for view in home.daemon.status().services))
            home.await_state("comfy", State.READY)
            assert idle_of(home) == IdleView("chat", None, f"the workflow draw runs (pid {run.pid})")
            gate.touch()
            assert run.wait(60) == 0
        except BaseException:
            run.send_signal(signal.SIGINT)
            raise
    home.await_state("chat", State.READY)


def test_a_default_that_was_taken_down_by_hand_stays_down(home: Home) -> None:
    home.configure(LLM + comfy(home.folder / "www").replace("group = 'one'", "") + IDLE, limits="switch_cooldown_s = 0")
    home.run("up", "chat")
    home.run("up", "comfy")
    home.run("down", "chat")
    assert idle_of(home) == IdleView("chat", None, "you took chat down")


def test_a_default_that_cannot_come_back_is_tried_once_and_the_other_goes_on(home: Home) -> None:
    begin(home, IDLE.replace('"chat"', '"gone"') + f'[service.gone]\nmodel = "{home.folder}/gone.gguf"\n')
    wait_for("the failed try", lambda: "failed" in idle_of(home).why)
    assert home.service("comfy").state is State.READY
    log = home.paths.daemon_log.read_text()
    assert log.count("service=gone comes back: nothing is asked of comfy") == 1  # not in chat's place, on slow machines
    assert "service=gone did not come back" in log


def test_a_service_with_a_time_out_of_its_own_makes_room_for_the_default_when_that_is_over(home: Home) -> None:
    home.configure(LLM + comfy(home.folder / "www") + "idle_s = 1.0\n" + LONG, limits="switch_cooldown_s = 0")
    home.run("up", "chat")
    home.run("switch", "comfy")
    home.await_state("chat", State.READY)
    assert home.service("comfy").why == "chat takes its place"


def test_a_default_that_was_taken_down_does_not_keep_others_from_stopping_when_idle(home: Home) -> None:
    alone = comfy(home.folder / "www").replace("group = 'one'", "idle_s = 1.0")
    home.configure(LLM + alone + LONG, limits="switch_cooldown_s = 0")
    home.run("up", "chat")
    home.run("up", "comfy")
    home.run("down", "chat")
    home.await_state("comfy", State.STOPPED)
    assert home.service("comfy").why == "nothing was asked of it for 1 s (idle_s)"
    assert home.service("chat").state is State.STOPPED
