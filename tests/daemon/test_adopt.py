"""`stoker adopt`: an engine that somebody started by hand is watched, fronted and ended, and nothing else is touched."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fake_engine import Script, write_fake_engine
from home import Home, wait_for
from real_tools import missing
from stoker.config import demo_model
from stoker.facts.machine.ports import pick_free_port
from stoker.records import State

LOOPBACK = "127.0.0.1"
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts programs by hand, and ends at last what a test left of them."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(*words: object, **more: Any) -> subprocess.Popen[bytes]:
        more = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **more}
        started.append(subprocess.Popen([str(word) for word in words], **more))
        return started[-1]

    yield begin
    for one in started:
        one.kill()
        one.wait()


def by_hand(model: object = None, port: int = 0, alias: str = "handmade") -> tuple[object, ...]:
    """The words of a real llama.cpp."""
    model, port = model or demo_model(), port or pick_free_port(LOOPBACK)
    words = ("-m", "stoker.embedded", "--model", model, "--alias", alias, "--host", LOOPBACK, "--port", port)
    return (sys.executable, *words, "--ctx-size", "1024", "--parallel", "1", "--jinja", "--reasoning", "off")


def fake(folder: Path, alias: str = "pretender", **script: Any) -> tuple[object, ...]:
    """The words of a scripted engine that goes by the name of a real one."""
    program = write_fake_engine(folder, Script(**script)).rename(folder / "llama-server")
    return (sys.executable, program, "--model", demo_model(), "--alias", alias, "--port", pick_free_port(LOOPBACK))


def test_a_real_engine_is_adopted_as_it_is_answers_and_is_taken_down(home: Home, start: Start, tmp_path: Path) -> None:
    with (tmp_path / "out.log").open("wb") as out:
        engine = start(*by_hand(), stdout=out, stderr=out, start_new_session=True)
    adopted = home.json("adopt", str(engine.pid))
    service = adopted["service"]
    assert (service["name"], service["model"], service["state"], service["pid"]) == (
        "handmade",
        "handmade",
        "READY",
        engine.pid,
    )
    assert service["memory_need_bytes"] > 0
    assert home.json("ask", "Hello?", "--model", "handmade", "--max-tokens", "4")["answer"]
    assert f"what it prints goes to {tmp_path}/out.log" in home.run("logs", "handmade").stdout
    home.run("down", "handmade")
    assert engine.wait() == 0
    assert home.service("handmade").state is State.STOPPED


def test_lint_is_shown_and_never_refuses(home: Home, start: Start) -> None:
    words = [LOOPBACK if word == "0.0.0.0" else word for word in by_hand()]
    words[words.index(LOOPBACK)] = "0.0.0.0"
    engine = start(*words)
    adopted = home.json("adopt", str(engine.pid))
    assert adopted["service"]["state"] == "READY"
    assert any("network" in finding["what"] or "key" in finding["what"] for finding in adopted["findings"])


def test_an_engine_with_a_key_of_its_own_is_asked_with_that(home: Home, start: Start) -> None:
    engine = start(*by_hand(), env={**os.environ, "LLAMA_API_KEY": "its-own-key"})
    assert home.json("adopt", str(engine.pid))["service"]["state"] == "READY"
    assert home.json("ask", "Hello?", "--max-tokens", "4")["answer"]
    assert b"its-own-key" not in b"".join(file.read_bytes() for file in home.paths.state.rglob("*") if file.is_file())


def test_one_that_still_loads_is_waited_for(home: Home, start: Start, tmp_path: Path) -> None:
    gate = tmp_path / "open"
    engine = start(*fake(tmp_path / "fake", gate=str(gate)))
    wait_for("its port", lambda: home_listens(engine.pid))
    waiting = start(sys.executable, "-m", "stoker", "adopt", engine.pid, "--name", "slow", env=home.environment)
    wait_for("the daemon", lambda: home.daemon_pid and home.paths.address_file.exists())
    wait_for("the service", lambda: any(one.state is State.LOADING for one in home.daemon.status().services))
    gate.touch()
    assert waiting.wait() == 0
    assert home.service("slow").state is State.READY


def home_listens(pid: int) -> bool:
    from stoker.facts.machine.ports import read_listeners

    return any(one.pid == pid for one in read_listeners())


def ready(home: Home, start: Start, folder: Path, *words: str, **script: Any) -> subprocess.Popen[bytes]:
    """Starts a scripted engine and adopts it as `pretender`."""
    engine = start(*fake(folder, **script), cwd=folder.parent)
    wait_for("its port", lambda: home_listens(engine.pid))
    home.run("adopt", str(engine.pid), *words)
    return engine


def test_only_the_engine_and_what_it_started_is_ended(home: Home, start: Start, tmp_path: Path) -> None:
    beside = start("sleep", "600")  # of the same session and the same process group: the test's own
    engine = ready(home, start, tmp_path / "fake", orphan=True)
    child = int(Path(f"/proc/{engine.pid}/task/{engine.pid}/children").read_text().split()[0])
    assert os.getsid(engine.pid) == os.getsid(beside.pid) == os.getsid(0)
    home.run("down", "pretender")
    engine.wait()
    wait_for("the child's end", lambda: not is_there(child))
    assert beside.poll() is None


def test_what_ignores_sigterm_is_killed(home: Home, start: Start, tmp_path: Path) -> None:
    home.configure(limits="stop_grace_s = 0.2")
    engine = ready(home, start, tmp_path / "fake", ignores_term=True)
    home.run("down", "pretender")
    assert engine.wait() == -signal.SIGKILL


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes() != b""


def test_one_that_dies_has_failed_and_says_why(home: Home, start: Start, tmp_path: Path) -> None:
    engine = ready(home, start, tmp_path / "fake")
    engine.kill()
    engine.wait()
    failed = home.await_state("pretender", State.FAILED)
    assert "the engine ended (how is unknown" in failed.why
    assert failed.restarts == 0


def test_one_that_dies_is_started_again_by_its_own_words_if_that_was_asked(home: Home, start: Start, tmp_path: Path) -> None:
    engine = ready(home, start, tmp_path / "fake", "--restart")
    words = Path(f"/proc/{engine.pid}/cmdline").read_bytes()
    engine.kill()
    engine.wait()
    home.await_state("pretender", State.BACKOFF, State.STARTING, State.LOADING, State.PROVING)
    again = home.await_state("pretender", State.READY)
    assert again.pid is not None and again.pid != engine.pid
    assert Path(f"/proc/{again.pid}/cmdline").read_bytes() == words
    assert Path(f"/proc/{again.pid}/cwd").readlink() == tmp_path
    home.kill_daemon()
    home.add_fake("other")
    home.run("up", "other")
    assert home.await_state("pretender", State.READY).pid == again.pid


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_it_outlives_the_daemon_and_the_next_one_takes_it_back(
    home: Home, start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    engine = ready(home, start, tmp_path / "fake")
    os.kill(home.daemon_pid or 0, number)
    wait_for("the daemon's end", lambda: home.daemon_pid is None)
    assert engine.poll() is None
    assert home.json("status")["services"][0]["pid"] == engine.pid
    home.add_fake("other")
    home.run("up", "other")
    assert home.await_state("pretender", State.READY).pid == engine.pid
    home.run("down", "pretender")
    assert engine.wait() == -signal.SIGTERM


def test_one_that_died_while_no_daemon_ran_has_failed(home: Home, start: Start, tmp_path: Path) -> None:
    engine = ready(home, start, tmp_path / "fake")
    home.kill_daemon()
    engine.kill()
    engine.wait()
    home.add_fake("other")
    home.run("up", "other")
    assert "which was adopted, has ended" in home.await_state("pretender", State.FAILED).why


def test_down_without_a_daemon_ends_it_too(home: Home, start: Start, tmp_path: Path) -> None:
    engine = ready(home, start, tmp_path / "fake")
    home.kill_daemon()
    assert "Ended without it: pretender" in home.run("down").stdout
    assert engine.wait() == -signal.SIGTERM


def test_twice_is_refused(home: Home, start: Start, tmp_path: Path) -> None:
    engine = ready(home, start, tmp_path / "fake")
    assert "is watched already, as pretender" in home.run("adopt", str(engine.pid), "--name", "again", code=3).stderr


def test_the_name_of_a_service_that_is_up_is_refused(home: Home, start: Start, tmp_path: Path) -> None:
    ready(home, start, tmp_path / "fake")
    other = start(*fake(tmp_path / "other", alias="second"))
    wait_for("its port", lambda: home_listens(other.pid))
    said = home.run("adopt", str(other.pid), "--name", "pretender", code=3).stderr
    assert "there is a service called `pretender` already" in said
    assert other.poll() is None


def test_what_stoker_runs_already_is_refused(home: Home) -> None:
    pid = home.json("up")["pid"]
    assert f"pid {pid} was started by Stoker already, as demo" in home.run("adopt", str(pid), code=3).stderr


def test_a_process_of_another_user_is_refused(home: Home, start: Start) -> None:
    if os.geteuid() != 0:
        missing("only root can start a process of another user")
    other = start("sleep", "600", user=pwd.getpwnam("nobody").pw_uid)
    assert f"pid {other.pid} belongs to nobody, not to you" in home.run("adopt", str(other.pid), code=3).stderr
    assert other.poll() is None


def test_what_is_no_engine_is_wrong_use(home: Home, start: Start) -> None:
    sleeper = start("sleep", "600")
    said = home.run("adopt", str(sleeper.pid), code=2).stderr
    assert f"pid {sleeper.pid} is no engine that Stoker knows" in said
    assert "`sleep 600`" in said


def test_a_shell_around_an_engine_names_the_engine(home: Home, start: Start, tmp_path: Path) -> None:
    words = " ".join(map(str, fake(tmp_path / "fake")))
    shell = start("sh", "-c", f"{words}; true")
    child = int(
        wait_for("the engine", lambda: Path(f"/proc/{shell.pid}/task/{shell.pid}/children").read_text().strip() or None)
    )
    wait_for("its port", lambda: home_listens(child))
    assert f"next: `stoker adopt {child}`" in home.run("adopt", str(shell.pid), code=2).stderr
    os.kill(child, signal.SIGKILL)


def test_a_pid_that_is_gone_and_a_container_are_told(home: Home, start: Start) -> None:
    gone = start("true")
    gone.wait()
    assert f"there is no process with the pid {gone.pid}" in home.run("adopt", str(gone.pid), code=2).stderr
    home.run("down")
    home.environment["DOCKER_HOST"] = "unix:///no/such/socket"
    assert "no container engine on this machine" in home.run("adopt", "vllm-server", code=3).stderr
    assert "neither a pid nor a container's name" in home.run("adopt", "a/b", code=2).stderr


def test_an_engine_that_dies_while_it_proves_itself_has_failed(home: Home, start: Start, tmp_path: Path) -> None:
    engine = start(*fake(tmp_path / "fake", dies="proving"))
    wait_for("its port", lambda: home_listens(engine.pid))
    assert "is FAILED: the engine ended" in home.run("adopt", str(engine.pid), code=1).stderr


def test_one_that_says_it_is_another_model_never_becomes_ready(home: Home, start: Start, tmp_path: Path) -> None:
    engine = start(*fake(tmp_path / "fake", says_model="somebody-else"))
    wait_for("its port", lambda: home_listens(engine.pid))
    home.run("adopt", str(engine.pid), "--model-name", "pretender", code=1)
    assert home.service("pretender").state is State.FAILED
    assert engine.poll() is None
    home.run("adopt", str(engine.pid), "--model-name", "somebody-else", "--name", "pretender")
    assert home.service("pretender").pid == engine.pid


def test_a_secret_in_its_words_cannot_be_started_again(home: Home, start: Start, tmp_path: Path) -> None:
    engine = start(*fake(tmp_path / "fake"), "--api-key", "sk-very-secret-key-of-mine")
    wait_for("its port", lambda: home_listens(engine.pid))
    assert "was started with a secret" in home.run("adopt", str(engine.pid), "--restart", code=3).stderr
    home.run("adopt", str(engine.pid))
    assert b"very-secret" not in b"".join(file.read_bytes() for file in home.paths.state.rglob("*") if file.is_file())
