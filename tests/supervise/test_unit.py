"""A service that is a unit of a real systemd's: started, watched and stopped, and left alone where others started it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from home import Home, wait_for
from real_tools import Systemd, need_root, own_systemd
from stoker.config import read_config
from stoker.facts.machine.ports import pick_free_port
from stoker.records import ServiceView, State

UNIT = "voxtral.service"
FAILS = "[Unit]\nDefaultDependencies=no\n[Service]\nType=exec\nExecStart=/bin/false\n"


def serving(port: int, more: str = "") -> str:
    """Returns a unit that answers HTTP; it knows no journal and no network target here."""
    command = f"{sys.executable} -m http.server --bind 127.0.0.1 {port}"
    return f"[Unit]\nDefaultDependencies=no\n[Service]\nExecStart={command}\n{more}\n"


def table(name: str, unit: str, port: int, more: str = 'health = "/"') -> str:
    return f'[service.{name}]\nengine = "command"\nunit = "{unit}"\nport = {port}\nclaim_gib = 0.05\n{more}\n'


@pytest.fixture
def port() -> int:
    return pick_free_port("127.0.0.1")


@pytest.fixture
def systemd(home: Home, tmp_path: Path, port: int) -> Iterator[Systemd]:
    """A systemd with the unit; `home` runs Stoker inside of it."""
    units = tmp_path / "units"
    units.mkdir()
    (units / UNIT).write_text(serving(port))
    (units / "false.service").write_text(FAILS)
    (units / "masked.service").symlink_to("/dev/null")
    home.configure(table("voxtral", UNIT, port), limits="settle_s = 10")
    with own_systemd(units) as systemd:
        home.prefix = systemd.enter
        yield systemd
        home.run("down", code=None)
        home.prefix = ()


def pid_of(systemd: Systemd) -> int:
    return int(systemd.show(UNIT, "MainPID"))


def test_it_is_started_proved_and_stopped_through_systemctl(home: Home, systemd: Systemd) -> None:
    view = home.json("up", "voxtral")
    assert (view["state"], view["pid"]) == ("READY", pid_of(systemd))
    assert systemd.show(UNIT, "ActiveState") == "active"
    assert home.service("voxtral").memory_bytes
    home.run("down", "voxtral")
    assert systemd.show(UNIT, "ActiveState") == "inactive"
    assert "journalctl -u voxtral.service" in home.run("logs", "voxtral").stdout


def test_a_stop_by_somebody_else_is_noticed_and_stays(home: Home, systemd: Systemd) -> None:
    home.run("up", "voxtral")
    systemd.ctl("stop", UNIT)
    stopped = home.await_state("voxtral", State.STOPPED)
    assert "was stopped by somebody else" in stopped.why
    assert systemd.show(UNIT, "ActiveState") == "inactive"


def test_one_that_is_killed_is_started_again(home: Home, systemd: Systemd) -> None:
    before = home.json("up", "voxtral")["pid"]
    systemd.ctl("kill", "--signal=KILL", UNIT)
    home.await_state("voxtral", State.BACKOFF, State.STARTING, State.LOADING)
    assert "killed by SIGKILL" in (home.paths.daemon_log).read_text()
    again = home.await_state("voxtral", State.READY)
    assert again.pid == pid_of(systemd) != before


def test_a_restart_by_somebody_else_is_noticed(home: Home, systemd: Systemd) -> None:
    before = home.json("up", "voxtral")["pid"]
    systemd.ctl("restart", UNIT)
    again = wait_for("another process", lambda: _ready_with_another(home, before))
    assert "somebody restarted it" in home.paths.daemon_log.read_text()
    assert again.pid == pid_of(systemd)


def _ready_with_another(home: Home, before: int) -> ServiceView | None:
    view = home.service("voxtral")
    return view if view.state is State.READY and view.pid != before else None


def test_one_that_somebody_else_started_is_told_of_and_taken_over(home: Home, systemd: Systemd) -> None:
    home.run("up", "voxtral")
    home.run("down", "voxtral")
    systemd.ctl("start", UNIT)
    pid = pid_of(systemd)
    assert "started by somebody else" in home.service("voxtral").warnings[0]
    home.kill_daemon()
    home.add_fake("other")
    home.run("up", "other")
    assert (home.service("voxtral").state, pid_of(systemd)) == (State.STOPPED, pid)
    assert home.json("up", "voxtral")["pid"] == pid
    assert home.service("voxtral").warnings == ()
    home.run("down", "voxtral")
    assert systemd.show(UNIT, "ActiveState") == "inactive"


def test_it_outlives_a_killed_daemon_and_is_taken_back(home: Home, systemd: Systemd) -> None:
    pid = home.json("up", "voxtral")["pid"]
    home.kill_daemon()
    home.add_fake("other")
    home.run("up", "other")
    assert home.await_state("voxtral", State.READY).pid == pid


def test_down_without_a_daemon_stops_it(home: Home, systemd: Systemd) -> None:
    home.run("up", "voxtral")
    home.kill_daemon()
    assert "Ended without it: voxtral" in home.run("down").stdout
    assert systemd.show(UNIT, "ActiveState") == "inactive"


@pytest.mark.parametrize(
    ("unit", "code", "says"),
    [
        ("nosuch.service", 3, "systemd knows no unit nosuch.service"),
        ("masked.service", 3, "systemd calls it masked"),
        ("false.service", 1, "false.service"),
    ],
)
def test_a_unit_that_cannot_run_says_why(home: Home, systemd: Systemd, port: int, unit: str, code: int, says: str) -> None:
    home.configure(table("other", unit, port))
    assert says in home.run("up", "other", code=code).stderr


def test_a_stop_while_it_starts_ends_the_start(home: Home, systemd: Systemd, tmp_path: Path, port: int) -> None:
    (tmp_path / "units" / UNIT).write_text(serving(port, "Type=notify\nTimeoutStartSec=600"))  # it never says READY=1
    systemd.ctl("daemon-reload")
    wish = home.json("plan", "voxtral")["plan"]
    assert wish["unit"] == UNIT
    home.add_fake("other")
    home.run("up", "other")
    home.daemon.up(read_config(home.paths.config).services["voxtral"])
    wait_for("its start", lambda: systemd.show(UNIT, "ActiveState") == "activating")
    assert home.service("voxtral").state is State.STARTING
    home.run("down", "voxtral")
    wait_for("its end", lambda: systemd.show(UNIT, "ActiveState") in ("inactive", "failed"))


def test_where_there_is_no_systemd_it_says_so(home: Home, port: int) -> None:
    need_root()
    home.configure(table("voxtral", UNIT, port))
    home.prefix = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /run && exec "$@"', "sh")
    said = home.run("up", "voxtral", code=3).stderr
    assert "there is no systemd here" in said
    home.run("down")
    home.prefix = ()


JOURNAL = {
    "systemd-journald.socket": (
        "[Unit]\nDefaultDependencies=no\n[Socket]\nListenDatagram=/run/systemd/journal/socket\n"
        "ListenStream=/run/systemd/journal/stdout\nService=systemd-journald.service\nPassCredentials=yes\n"
    ),
    "systemd-journald.service": (
        "[Unit]\nDefaultDependencies=no\nRequires=systemd-journald.socket\n[Service]\nType=notify\n"
        "ExecStart=/lib/systemd/systemd-journald\nEnvironment=SYSTEMD_LOG_TARGET=null\n"
    ),
}


def test_a_line_of_the_journal_tells_that_it_is_up_and_is_in_the_services_log(
    home: Home, systemd: Systemd, tmp_path: Path, port: int
) -> None:
    for name, text in JOURNAL.items():
        (tmp_path / "units" / name).write_text(text)
    systemd.ctl("daemon-reload")
    systemd.ctl("start", "systemd-journald.service")
    command = f"/bin/sh -c 'sleep 0.3; echo voxtral is up; exec {sys.executable} -m http.server {port}'"
    (tmp_path / "units" / "said.service").write_text(f"[Unit]\nDefaultDependencies=no\n[Service]\nExecStart={command}\n")
    systemd.ctl("daemon-reload")
    home.configure(table("said", "said.service", port, 'ready_line = "voxtral is u[p]"'), limits="load_s = 20")
    home.run("up", "said")
    assert "voxtral is up" in home.run("logs", "said").stdout.splitlines()
    home.kill_daemon()
    home.add_fake("other")
    home.run("up", "other")
    assert home.await_state("said", State.READY).pid == int(systemd.show("said.service", "MainPID"))
    home.run("down", "said")
