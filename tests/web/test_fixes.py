"""A fix by the control API: shown with a digest, tried by whoever names it, and written once the service is READY."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from home import Home, wait_for
from page_client import Browser
from stoker.errors import Refused
from stoker.records import State
from stoker.records.fixing import FixTried

VARIABLE = "TORCHINDUCTOR_AUTOGRAD_CACHE"
PICKLING = "_pickle.PicklingError: Can't pickle <function> while storing AOTAutograd cache"


def outcome_of(home: Home) -> FixTried:
    def ended() -> FixTried | None:
        tried = home.daemon.last_fix()
        return tried if tried is not None and tried.outcome else None

    return wait_for("what comes of the fix", ended)


def outcome_under_way(home: Home) -> FixTried:
    tried = home.daemon.last_fix()
    assert tried is not None and tried.outcome is None
    return tried


def fail(home: Home, **script: str) -> None:
    home.add_fake("coder", dies="loading", prints=PICKLING, **script)
    home.run("up", "coder", code=1)


def test_a_fix_is_shown_then_tried_then_written(home: Home) -> None:
    fail(home, needs=VARIABLE)
    browser, before = Browser(home), home.paths.config.read_text()
    assert browser.send("GET", "/api/fix").json() is None
    fix = browser.send("GET", "/api/services/coder/fix").json()
    assert (fix["rule"], fix["settings"], fix["goes"]) == ("aot-autograd-pickling", [f"+ ${VARIABLE} 0"], [])
    assert fix["lines"][-1] == f'+ environment = {{ {VARIABLE} = "0" }}'
    assert home.paths.config.read_text() == before
    maps = Path(f"/proc/{home.daemon_pid}/maps").read_text()
    assert "uvloop" in maps
    assert "ahocorasick" not in maps  # the log was read beside the daemon, whose memory and streams know nothing of it
    watcher = Browser(home, looks_on=True)
    assert watcher.send("GET", "/api/services/coder/fix").status == 200
    assert watcher.send("POST", "/api/services/coder/fix", {"digest": fix["digest"]}).code == "read_only"
    begun = browser.send("POST", "/api/services/coder/fix", {"digest": fix["digest"]})
    assert (begun.status, begun.json()["service"]) == (200, "coder")
    tried = outcome_of(home)
    assert (tried.outcome, tried.rule, home.service("coder").state) == ("written", "aot-autograd-pickling", State.READY)
    assert tomllib.loads(home.paths.config.read_text())["service"]["coder"]["environment"] == {VARIABLE: "0"}
    [backup] = home.folder.glob("stoker.toml.before-*")
    assert backup.read_text() == before
    assert browser.send("GET", "/api/dashboard").json()["fix"]["outcome"] == "written"


def test_a_fix_that_does_not_help_is_not_written(home: Home) -> None:
    fail(home)
    before = home.paths.config.read_text()
    home.daemon.apply_fix("coder", home.daemon.fix("coder").digest)
    tried = outcome_of(home)
    assert tried.outcome == "not applied"
    assert "coder is FAILED" in tried.why
    assert home.paths.config.read_text() == before


def test_what_was_not_shown_is_not_tried(home: Home) -> None:
    fail(home, needs=VARIABLE)
    digest = home.daemon.fix("coder").digest
    home.paths.config.write_text(home.paths.config.read_text() + "# changed meanwhile\n")
    with pytest.raises(Refused, match="is not what was shown"):
        home.daemon.apply_fix("coder", digest)
    assert home.daemon.last_fix() is None


def test_a_file_that_is_changed_while_it_is_tried_stays_as_it_is(home: Home) -> None:
    loaded = home.folder / "loaded"
    fail(home, needs=VARIABLE, gate=str(loaded))
    home.daemon.apply_fix("coder", home.daemon.fix("coder").digest)
    changed = home.paths.config.read_text() + "# changed meanwhile\n"
    home.paths.config.write_text(changed)
    loaded.touch()
    tried = outcome_of(home)
    assert tried.outcome == "not written"
    assert f'environment = {{ {VARIABLE} = "0" }}' in tried.why
    assert (home.service("coder").state, home.paths.config.read_text()) == (State.READY, changed)


def test_what_no_setting_mends_is_said_so(home: Home) -> None:
    home.add_fake("coder", dies="loading", prints="OSError: [Errno 98] Address already in use")
    home.run("up", "coder", code=1)
    with pytest.raises(Refused, match="no setting of the service mends this"):
        home.daemon.fix("coder")


def begin_daemon(home: Home) -> None:
    """Brings a daemon up, and no service."""
    script = "from stoker.config import find_paths; from stoker.flows.up import ensure_daemon; ensure_daemon(find_paths())"
    subprocess.run([sys.executable, "-c", script], env=home.environment, check=True)


def begin_and_kill(home: Home, **script: str) -> Path:
    """Has a fix tried until the engine loads, then kills the daemon; returns the file for which the engine waits."""
    loaded = home.folder / "loaded"
    fail(home, needs=VARIABLE, gate=str(loaded), **script)
    home.daemon.apply_fix("coder", home.daemon.fix("coder").digest)
    home.await_state("coder", State.LOADING)
    home.kill_daemon()
    return loaded


def test_a_fix_that_outlives_its_daemon_is_written_by_the_next_one(home: Home) -> None:
    loaded = begin_and_kill(home)
    assert home.paths.fix_file.stat().st_mode & 0o777 == 0o600
    begin_daemon(home)
    assert outcome_under_way(home).rule == "aot-autograd-pickling"
    loaded.touch()
    assert outcome_of(home).outcome == "written"
    assert tomllib.loads(home.paths.config.read_text())["service"]["coder"]["environment"] == {VARIABLE: "0"}
    assert home.service("coder").state is State.READY
    assert not home.paths.fix_file.exists()


def test_a_fix_that_became_ready_while_nobody_wrote_is_written_by_the_next_daemon(home: Home) -> None:
    fail(home, needs=VARIABLE)
    before = home.paths.config.read_text()
    home.daemon.apply_fix("coder", home.daemon.fix("coder").digest)
    wait_for("it to be kept", home.paths.fix_file.exists)
    kept = home.paths.fix_file.read_bytes()
    outcome_of(home)
    home.kill_daemon()  # as if it had been killed before it wrote
    home.paths.config.write_text(before)
    home.paths.fix_file.write_bytes(kept)
    begin_daemon(home)
    assert outcome_of(home).outcome == "written"
    assert f'{VARIABLE} = "0"' in home.paths.config.read_text()


def test_a_fix_whose_service_was_stopped_meanwhile_is_not_written(home: Home) -> None:
    begin_and_kill(home)
    before = home.paths.config.read_text()
    home.run("down", "coder")
    begin_daemon(home)
    tried = outcome_of(home)
    assert (tried.outcome, home.paths.config.read_text()) == ("not applied", before)
    assert not home.paths.fix_file.exists()
