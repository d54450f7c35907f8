"""Programs that are no engine, as services: started, watched and ended like engines."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from home import Home, wait_for
from stoker.records import State

SLEEP = "import time; time.sleep(600)"


def table(name: str, *command: str, more: str = "") -> str:
    """Returns the table of a command service."""
    return f'[service.{name}]\nengine = "command"\nprogram = {json.dumps(command)}\nclaim_gib = 0.1\n{more}\n'


def server(folder: Path, more: str = 'health = "/"') -> str:
    """Returns a web server of a folder as a service."""
    command = (sys.executable, "-m", "http.server", "{port}", "--bind", "127.0.0.1", "--directory", str(folder))
    return table("web", *command, more=more)


def python(name: str, code: str, more: str) -> str:
    """Returns a Python program as a service."""
    return table(name, sys.executable, "-u", "-c", code, more=more)


def test_a_web_server_is_up_when_its_health_answers_and_gone_after_down(home: Home) -> None:
    (home.folder / "index.html").write_text("it is here")
    home.configure(server(home.folder))
    view = home.json("up", "web")
    assert (view["state"], view["answers"], view["engine"]) == ("READY", False, "command")
    asking = http.client.HTTPConnection(view["address"].removeprefix("http://"))
    asking.request("GET", "/")
    assert asking.getresponse().read() == b"it is here"
    asking.close()
    home.run("down", "web")
    assert home.engines() == {}


def test_a_command_is_no_model_that_the_gateway_offers(home: Home) -> None:
    home.configure(server(home.folder))
    home.run("up", "web")
    models = json.loads(b"".join(home.daemon.stream("GET", "/v1/models", None)))
    assert models["data"] == []


def test_a_program_is_up_when_its_line_is_printed_and_not_before(home: Home) -> None:
    gate = home.folder / "gate"
    code = (
        f"import os, time\nprint('loading 1/2')\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)\n"
        "print('model ready in 2.5 s')\ntime.sleep(600)"
    )
    home.configure(python("voice", code, r"ready_line = 'ready in [\d.]+ s'"))
    with subprocess.Popen([sys.executable, "-m", "stoker", "up", "voice"], env=home.environment) as up:
        wait_for("a daemon", lambda: home.daemon_pid)
        wait_for("the service", lambda: "voice" in home.run("status").stdout)
        loading = home.await_state("voice", State.LOADING)
        wait_for("its first line", lambda: "loading 1/2" in home.daemon.tail("voice", 5))
        assert home.service("voice").state is loading.state
        gate.touch()
        assert up.wait(60) == 0
    assert home.service("voice").state is State.READY


def test_a_ready_line_of_the_launch_before_does_not_count(home: Home) -> None:
    told = home.folder / "told"
    code = (
        "import os, sys, time\n"
        f"first = not os.path.exists({str(told)!r})\nopen({str(told)!r}, 'w').close()\n"
        "print('up and running' if first else 'this time I say nothing')\ntime.sleep(600)"
    )
    home.configure(python("once", code, "ready_line = 'up and running'"), limits="load_s = 1.0")
    home.run("up", "once")
    home.run("down", "once")
    assert "did not load within 1 s (load_s)" in home.run("up", "once", code=4).stderr


@pytest.mark.parametrize(
    ("code", "says", "exit_code"),
    [
        ("print('no such voice'); raise SystemExit(3)", "exit code 3", 1),
        (SLEEP, "did not load within 0.5 s (load_s)", 4),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "killed by SIGSEGV", 1),
    ],
)
def test_a_program_that_dies_or_never_gets_ready_fails_with_what_happened(
    home: Home, code: str, says: str, exit_code: int
) -> None:
    home.configure(python("bad", code, "ready_line = 'ready'"), limits="load_s = 0.5")
    assert says in home.run("up", "bad", code=exit_code).stderr
    assert home.service("bad").state is State.FAILED
    assert home.engines() == {}


def test_a_program_that_dies_when_it_is_up_is_started_again(home: Home) -> None:
    home.configure(server(home.folder))
    first = home.json("up", "web")
    os.kill(first["pid"], signal.SIGKILL)
    home.await_state("web", State.BACKOFF)
    second = home.await_state("web", State.READY)
    assert second.pid not in (None, first["pid"])


def test_a_program_outlives_a_killed_daemon_and_is_taken_back(home: Home) -> None:
    home.configure(server(home.folder))
    first = home.json("up", "web")
    home.kill_daemon()
    again = home.json("up", "web")
    assert (again["pid"], again["state"]) == (first["pid"], "READY")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ('health = "/"\nmodel = "x.gguf"', "`model` means nothing for a command"),
        ("", "nothing tells when"),
        ("ready_line = '('", "which is no pattern"),
        ('health = "/"\nclaim_gib = -1', "`claim_gib` is -1"),
    ],
)
def test_a_wrong_wish_is_refused_and_nothing_runs(home: Home, more: str, says: str) -> None:
    text = table("odd", "sleep", "{port}", more=more)
    home.configure(text.replace("claim_gib = 0.1\n", "", 1) if "claim_gib = -1" in more else text)
    assert says in home.run("up", "odd", code=3).stderr
    assert home.engines() == {}


def test_a_program_that_is_not_there_is_named(home: Home) -> None:
    home.configure(table("odd", "/no/such/program", "{port}", more='health = "/"'))
    assert "there is no program `/no/such/program`" in home.run("up", "odd", code=3).stderr


def test_a_command_gets_no_key_of_ours(home: Home) -> None:
    home.configure(server(home.folder))
    view = home.json("up", "web")
    variables = Path(f"/proc/{view['pid']}/environ").read_bytes()
    for file in (home.paths.key_file, home.paths.control_key_file, home.paths.engine_key_file):
        assert file.read_bytes().strip() not in variables
