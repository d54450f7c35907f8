"""`stoker install`: what it prints, what it refuses, and that a real systemd runs a model by it."""

from __future__ import annotations

import pwd
from pathlib import Path

import pytest

from home import Home, wait_for
from real_tools import need, own_systemd, run
from stoker.flows.client import find_daemon
from stoker.flows.install import Caller, show_install
from stoker.records import State, StatusView

USER = "daemon"
UNITS = ("stoker.service", "stoker-demo.service")


def shown(home: Home, service: str = "demo", *words: str) -> dict[str, str]:
    """Returns the files that the verb shows, by name."""
    view = home.json("install", service, "--user", USER, "--dry-run", *words)
    return {Path(file["path"]).name: file["text"] for file in view["files"]}


def directives(text: str, key: str) -> list[str]:
    return [line.partition("=")[2] for line in text.splitlines() if line.startswith(f"{key}=")]


def test_it_shows_two_units_and_a_line_for_each_action(home: Home) -> None:
    view = home.json("install", "demo", "--user", USER, "--dry-run")
    assert [(file["path"], file["mode"]) for file in view["files"]] == [
        ("/etc/systemd/system/stoker.service", "0644"),
        ("/etc/systemd/system/stoker-demo.service", "0644"),
        ("/etc/sudoers.d/stoker-demo", "0440"),
    ]
    rules = [line for line in view["files"][2]["text"].splitlines() if not line.startswith("#")]
    assert [rule.split(" NOPASSWD: ")[0] for rule in rules] == [f"{USER} ALL=(root)"] * 3
    assert [rule.split()[-2:] for rule in rules] == [[action, UNITS[1]] for action in ("start", "stop", "restart")]
    assert (view["service"], view["user"]) == ("demo", USER)


def test_people_see_the_same_files_and_the_commands_that_put_them_in_place(home: Home) -> None:
    said = home.run("install", "demo", "--user", USER, "--dry-run").stdout
    for text in shown(home).values():
        assert text in said
    for command in (
        "visudo -c -f stoker-demo",
        "sudo install -m 0440 stoker-demo /etc/sudoers.d/",
        "systemd-analyze verify",
    ):
        assert command in said


def test_the_units_run_this_stoker_with_these_folders_as_the_user(home: Home) -> None:
    files = shown(home)
    for name in UNITS:
        assert directives(files[name], "User") == [USER]
        assert f"STOKER_STATE={home.paths.state}" in directives(files[name], "Environment")
        assert f"STOKER_CONFIG={home.paths.config}" in directives(files[name], "Environment")
    [serve], [up], [down] = (
        directives(files[name], key)
        for name, key in ((UNITS[0], "ExecStart"), (UNITS[1], "ExecStart"), (UNITS[1], "ExecStop"))
    )
    assert [line.split("-m stoker ")[1] for line in (serve, up, down)] == ["serve", "up demo", "down demo"]
    assert run(*serve.split()[:-1], "--version").startswith("stoker, version")


def test_the_limits_of_the_configuration_bound_what_systemd_waits_for(home: Home) -> None:
    home.configure(limits="drain_s = 100\nstop_grace_s = 20.5\nsettle_s = 300")
    files = shown(home)
    assert directives(files[UNITS[0]], "TimeoutStopSec") == ["151"]
    assert directives(files[UNITS[1]], "TimeoutStopSec") == ["451"]


def test_a_user_who_calls_it_themselves_gets_their_own_folders_and_search_path(tmp_path: Path) -> None:
    me = pwd.getpwnam(USER)
    variables = {"PATH": "/opt/cuda/bin:.:relative:/usr/bin", "XDG_STATE_HOME": str(tmp_path), "HOME": "/elsewhere"}
    daemon, service, _ = show_install("demo", None, caller=Caller(me.pw_uid, variables)).files
    assert directives(daemon.text, "Environment") == [
        f"STOKER_STATE={tmp_path}/stoker",
        f"STOKER_CONFIG={me.pw_dir}/.config/stoker/stoker.toml",
        "PATH=/opt/cuda/bin:/usr/bin",
    ]
    assert "PATH=" not in service.text


def test_for_another_user_the_callers_own_variables_do_not_count(tmp_path: Path) -> None:
    me = pwd.getpwnam(USER)
    variables = {"PATH": "/usr/bin", "XDG_STATE_HOME": str(tmp_path), "STOKER_CONFIG": f"{tmp_path}/stoker.toml"}
    daemon, *_ = show_install("demo", USER, caller=Caller(me.pw_uid + 1, variables)).files
    assert directives(daemon.text, "Environment") == [
        f"STOKER_STATE={me.pw_dir}/.local/state/stoker",
        f"STOKER_CONFIG={tmp_path}/stoker.toml",
    ]


def test_units_go_where_they_are_wanted(home: Home) -> None:
    view = home.json("install", "demo", "--user", USER, "--dry-run", "--system-unit-dir", "/opt/units/")
    assert view["files"][1]["path"] == "/opt/units/stoker-demo.service"
    assert any(command.endswith("stoker-demo.service /opt/units/") for command in view["commands"])


def test_a_service_with_a_dot_gets_a_file_that_sudo_does_not_skip(home: Home) -> None:
    home.configure('[service."qwen3.6"]\nmodel = "/m.gguf"')
    assert set(shown(home, "qwen3.6")) == {"stoker.service", "stoker-qwen3.6.service", "stoker-qwen3+6"}


def test_without_dry_run_nothing_happens_and_it_says_how_to_do_it(home: Home) -> None:
    said = home.run("install", "demo", "--user", USER, code=3).stderr
    assert "only prints for now" in said
    assert "visudo -c -f stoker-demo" in said
    assert "install -m 0440 stoker-demo /etc/sudoers.d/" in said


def test_a_dry_run_by_root_shows_all_and_says_that_it_is_refused_and_why() -> None:
    view = show_install("demo", None, caller=Caller(0, {}))
    assert len(view.files) == 3
    assert "Stoker should not run as root" in view.refused
    assert "--user NAME" in view.refused
    assert show_install("demo", USER, caller=Caller(0, {})).refused == ""


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("demo", "--user", "nobody-of-this-name"), 2, "there is no user nobody-of-this-name"),
        (("demo", "--user", "root"), 3, "Stoker should not run as root"),
        (("demo", "--user", "ALL"), 3, "'ALL' cannot be put into a unit or a sudoers file as a user"),
        (("demo", "--user", "%sudo"), 3, "as a user"),
        (("demo", "--user", "daemon, root"), 3, "as a user"),
        (("*", "--user", USER), 3, "'*' cannot be put into a unit or a sudoers file as a service"),
        (("demo ssh", "--user", USER), 3, "as a service"),
        (("../demo", "--user", USER), 3, "as a service"),
        (("demo\nALL ALL=(ALL) NOPASSWD: ALL", "--user", USER), 3, "as a service"),
        (("coder", "--user", USER), 2, "there is no service called `coder`"),
        (("demo", "--user", USER, "--system-unit-dir", "etc"), 3, "the folder of units 'etc'"),
        (("demo", "--user", USER, "--system-unit-dir", "/etc; reboot"), 3, "the folder of units"),
        ((), 2, "missing argument"),
    ],
)
def test_what_could_mean_more_than_it_says_is_refused(home: Home, words: tuple[str, ...], code: int, says: str) -> None:
    done = home.run("install", *words, "--dry-run", code=code)
    assert says in done.stderr
    assert done.stdout == ""


def test_the_real_programs_find_nothing_wrong_with_the_files(home: Home, tmp_path: Path) -> None:
    files = shown(home)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    units = [tmp_path / name for name in UNITS]
    assert str(tmp_path) not in run(need("systemd-analyze"), "verify", "--man=no", "--recursive-errors=no", *units)
    (tmp_path / "stoker-demo").chmod(0o440)
    assert "parsed OK" in run(need("visudo"), "-c", "-s", "-f", tmp_path / "stoker-demo")


def test_a_real_systemd_serves_the_demo_and_its_engine_outlives_a_crash_of_the_daemon(home: Home) -> None:
    units = home.folder / "units"
    _write_units(shown(home), units)
    with own_systemd(units) as systemd:
        systemd.ctl("start", "stoker-demo.service")
        before = home.daemon.status()
        assert [(service.name, service.state) for service in before.services] == [("demo", State.READY)]
        systemd.ctl("kill", "--kill-who=main", "--signal=KILL", "stoker.service")
        wait_for("the next daemon, with its model", lambda: _is_back(home, before))
        assert home.service("demo").pid == before.services[0].pid
        assert systemd.show("stoker-demo.service", "ActiveState") == "active"
        systemd.ctl("stop", "stoker-demo.service")
        assert home.service("demo").state is State.STOPPED
        systemd.ctl("restart", "stoker-demo.service")
        assert home.service("demo").state is State.READY
        systemd.ctl("stop", "stoker.service")
        assert systemd.show("stoker.service", "Result") == "success"
        assert home.engines() == {}


def test_a_service_that_cannot_start_fails_its_unit_with_the_reason(home: Home) -> None:
    home.configure('[service.coder]\nmodel = "missing.gguf"')
    units = home.folder / "units"
    _write_units(shown(home, "coder"), units)
    with own_systemd(units) as systemd:
        systemd.ctl("start", "stoker-coder.service", code=1)
        assert systemd.show("stoker-coder.service", "ExecMainStatus") == "3"
        assert systemd.show("stoker.service", "ActiveState") == "active"
        systemd.ctl("stop", "stoker.service")


def _is_back(home: Home, before: StatusView) -> bool:
    daemon = find_daemon(home.paths)
    if daemon is None:
        return False
    now = daemon.status()
    return now.daemon.pid != before.daemon.pid and all(service.state is State.READY for service in now.services)


def _write_units(files: dict[str, str], folder: Path) -> None:
    """Writes the units; the test's own folders belong to root alone, so root runs them here."""
    folder.mkdir()
    for name, text in files.items():
        if name.endswith(".service"):
            (folder / name).write_text(text)
            (folder / f"{name}.d").mkdir()
            (folder / f"{name}.d" / "test.conf").write_text("[Unit]\nDefaultDependencies=no\n[Service]\nUser=root\n")
