"""What is installed is checked, used and undone on a real systemd, with the real sudo, as a user without rights."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from home import Home
from real_tools import Systemd, need, need_root, own_systemd
from stoker.facts.machine.ports import pick_free_port
from stoker.launch.sudoers import render_sudoers
from stoker.records import State

USER = "daemon"
UNITS = Path("/etc/systemd/system")
TARGETS = ("sysinit", "basic", "shutdown", "multi-user", "network-online")
STUB = "[Unit]\nDefaultDependencies=no\n"
BUS = {
    "dbus.socket": f"{STUB}[Socket]\nListenStream=/run/dbus/system_bus_socket\n",
    "dbus.service": f"{STUB}[Service]\nExecStart=/usr/bin/dbus-daemon --system --address=systemd: --nofork --nopidfile "
    "--systemd-activation --syslog-only\n",
}
# All that `install` writes to lies in the namespace of the test, and in folders of its own.
PREPARE = """
set -e
mount --bind "$1" /etc/sudoers.d
mount -t tmpfs none /var/lib/systemd
mkdir /var/lib/systemd/linger
"""
# Python, and this checkout, may lie in a home that nobody else may enter: there only these two are seen by the user.
OPEN = """
set -e
mkdir "$1/python" "$1/checkout"
mount --bind "$2" "$1/python"
mount --bind "$3" "$1/checkout"
for place in "$2" "$3"; do
    top=/$(echo "$place" | cut -d/ -f2)
    [ "$top" = /usr ] || mountpoint -q "$top" || mount -t tmpfs -o mode=755 none "$top"
done
[ -d "$2" ] || { mkdir -p "$2" && mount --bind "$1/python" "$2"; }
[ -d "$3" ] || { mkdir -p "$3" && mount --bind "$1/checkout" "$3"; }
"""
CHECKOUT = Path(__file__).parents[2]
AS_USER = ("setpriv", "--reuid", USER, "--regid", USER, "--clear-groups")
MAY = (*AS_USER, "sh", "-c", 'cd / && exec "$@"', "sh", sys.executable, "-c", "import stoker")
Findings = list[dict[str, str]]


class Box:
    """A machine of the test's own with a user, a systemd, a sudo and a Stoker that is not installed yet."""

    def __init__(self, folder: Path, systemd: Systemd) -> None:
        self.folder, self.systemd = folder, systemd
        self.home = Home(folder)
        self.home.prefix = systemd.enter
        self.units = folder / "units"

    def words(self, verb: str, service: str, *more: str) -> tuple[str, ...]:
        return (verb, service, "--user", USER, *more)

    def root(self, *words: str) -> str:
        """Runs a command as root inside."""
        done = subprocess.run([*self.systemd.enter, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def install(self, service: str) -> None:
        """Does what the verb says, to the word."""
        view = self.home.json(*self.words("install", service, "--dry-run"))
        place = self.folder / "saved"
        place.mkdir(exist_ok=True)
        for file in view["files"]:
            (place / Path(file["path"]).name).write_text(file["text"])
        for command in view["commands"]:
            self.root("sh", "-c", f"cd {place} && {self._without_logind(command)}")

    def _without_logind(self, command: str) -> str:
        words = shlex.split(command)
        return f"touch /var/lib/systemd/linger/{words[-1]}" if "loginctl" in words else command

    def allow(self, units: tuple[str, ...]) -> None:
        """Lets the user start and stop these units."""
        sudoers = self.folder / "sudoers.d" / "stoker-test"
        sudoers.write_text(render_sudoers(USER, (), units=units))
        sudoers.chmod(0o440)

    def findings(self, service: str, code: int = 1) -> Findings:
        """What --verify finds."""
        done = self.home.run(*self.words("install", service, "--verify", "--json"), code=code)
        found: dict[str, Findings] = json.loads(done.stdout)
        return found["findings"]


@pytest.fixture
def box() -> Iterator[Box]:
    """The machine; its folder belongs to the user, and lies where they may go."""
    need_root()
    for program in ("sudo", "visudo", "dbus-daemon", "setpriv"):
        need(program)
    folder = Path(tempfile.mkdtemp())
    try:
        with _made(folder) as made:
            yield made
    finally:
        shutil.rmtree(folder)


@contextmanager
def _made(folder: Path) -> Iterator[Box]:
    units, sudoers = folder / "units", folder / "sudoers.d"
    units.mkdir()
    sudoers.mkdir(mode=0o750)
    for target in TARGETS:
        (units / f"{target}.target").write_text(STUB)
    for name, text in BUS.items():
        (units / name).write_text(text)
    shutil.chown(folder, USER, USER)
    folder.chmod(0o755)
    with own_systemd(units, UNITS) as systemd:
        box = Box(folder, systemd)
        if subprocess.run([*systemd.enter, *MAY], capture_output=True, check=False).returncode:
            box.root("sh", "-c", OPEN, "sh", str(folder), sys.base_prefix, str(CHECKOUT))
        box.root("sh", "-c", PREPARE, "sh", str(sudoers))
        systemd.ctl("start", "dbus.socket", "dbus.service")
        yield box
        box.home.run("down", code=None)


def what(findings: Findings) -> list[str]:
    return [one["what"] for one in findings]


def test_what_the_verb_says_installs_a_service_that_survives_and_is_undone_again(box: Box) -> None:
    before = sorted(file.name for file in box.units.iterdir())
    box.install("demo")
    assert box.findings("demo", code=0) == []
    assert box.home.service("demo").state is State.READY
    assert "comes back after a reboot" in box.home.run(*box.words("install", "demo", "--verify")).stdout
    undo = box.home.json(*box.words("uninstall", "demo", "--dry-run"))
    for command in undo["commands"]:
        box.root("sh", "-c", command)
    left = sorted(file.name for file in box.units.iterdir())
    assert left == before or left == sorted([*before, "multi-user.target.wants"])
    assert list((box.folder / "sudoers.d").iterdir()) == []
    assert "nothing of demo is installed" in box.home.run(*box.words("uninstall", "demo", "--dry-run")).stdout


def test_every_drift_is_found_and_says_what_to_do(box: Box) -> None:
    box.install("demo")
    unit, sudoers = box.units / "stoker-demo.service", box.folder / "sudoers.d" / "stoker-demo"
    unit.write_text(unit.read_text().replace("TimeoutStopSec=", "TimeoutStopSec=1"))
    sudoers.chmod(0o644)
    sudoers.write_text(sudoers.read_text().replace("NOPASSWD: /usr/bin/systemctl stop", "NOPASSWD: /usr/bin/systemctl kill"))
    os.chown(box.units / "stoker.service", 1, 0)
    (box.units / "stoker.service.d").mkdir()
    (box.units / "stoker.service.d" / "mine.conf").write_text("[Service]\nNice=5\n")
    box.root("rm", f"/var/lib/systemd/linger/{USER}")
    box.systemd.ctl("disable", "stoker-demo.service")
    box.systemd.ctl("daemon-reload")
    found = box.findings("demo")
    for part in (
        "stoker-demo.service is not what `stoker install --dry-run` prints now", "stoker-demo has the mode 0644, not 0440",
        f"sudo does not let {USER} run `/usr/bin/systemctl stop stoker-demo.service`", "stoker.service has drop-ins",
        f"{USER} does not linger", "stoker-demo.service is not enabled", f"stoker.service belongs to {USER}, not to root",
    ):  # fmt: skip
        assert any(part in one for one in what(found)), (part, what(found))
    [drift] = [one for one in found if f"{UNITS}/stoker-demo.service is not" in one["what"]]
    assert "-TimeoutStopSec=1195" in drift["why"]
    assert "+TimeoutStopSec=195" in drift["why"]
    assert all(one["fix"] for one in found)


def test_where_nothing_is_installed_each_part_is_missing(box: Box) -> None:
    found = what(box.findings("demo"))
    assert f"{UNITS}/stoker.service is missing" in found
    assert "the daemon does not answer" in found
    box.home.run(*box.words("uninstall", "demo"), code=3)


def test_the_last_service_takes_the_daemons_unit_with_it(box: Box) -> None:
    for name in ("stoker.service", "stoker-demo.service", "stoker-coder.service"):
        (box.units / name).write_text("# Written by Stoker.\n")
    one = box.home.json(*box.words("uninstall", "coder", "--dry-run"))
    assert f"sudo rm {UNITS}/stoker.service" not in one["commands"]
    assert any("stoker.service stays: stoker-demo.service need it" in kept for kept in one["kept"])
    (box.units / "stoker-coder.service").write_text("[Service]\n")
    assert any(
        "Stoker did not write it" in kept for kept in box.home.json(*box.words("uninstall", "coder", "--dry-run"))["kept"]
    )
    (box.units / "stoker-coder.service").unlink()
    assert f"sudo rm {UNITS}/stoker.service" in box.home.json(*box.words("uninstall", "demo", "--dry-run"))["commands"]


@pytest.fixture
def voxtral(box: Box) -> Box:
    """The machine, with a service that is a unit of systemd's."""
    port = pick_free_port("127.0.0.1")
    command = f"{sys.executable} -m http.server --bind 127.0.0.1 {port}"
    (box.units / "voxtral.service").write_text(f"{STUB}[Service]\nUser=nobody\nExecStart={command}\n")
    box.systemd.ctl("daemon-reload")
    table = '[service.voxtral]\nengine = "command"\nunit = "voxtral.service"\nclaim_gib = 0.05\nhealth = "/"\n'
    box.home.configure(f"{table}port = {port}\n", limits="settle_s = 10")
    return box


def test_an_installed_daemon_starts_and_stops_a_unit_by_exactly_its_sudoers_lines(voxtral: Box) -> None:
    box = voxtral
    box.install("voxtral")
    assert box.findings("voxtral", code=0) == []
    view = box.home.service("voxtral")
    assert (view.state, view.pid) == (State.READY, int(box.systemd.show("voxtral.service", "MainPID")))
    assert view.memory_bytes
    box.systemd.ctl("stop", "stoker-voxtral.service")
    assert box.systemd.show("voxtral.service", "ActiveState") == "inactive"
    (box.units / "voxtral.service").write_text(
        f"{(box.units / 'voxtral.service').read_text()}[Install]\nWantedBy=multi-user.target\n"
    )
    box.systemd.ctl("daemon-reload")
    box.systemd.ctl("enable", "voxtral.service")
    assert "voxtral.service is enabled" in what(box.findings("voxtral"))


def user_home(box: Box) -> Home:
    """The same home, used by the user from a shell."""
    text = box.home.paths.config.read_text()
    home = Home(box.folder)
    home.paths.config.write_text(text)
    home.prefix = (*box.systemd.enter, *AS_USER)
    return home


@pytest.mark.parametrize("units", [(), ("other.service",)])
def test_where_sudo_refuses_the_missing_line_is_named(voxtral: Box, units: tuple[str, ...]) -> None:
    voxtral.allow(units)
    home = user_home(voxtral)
    said = home.run("up", "voxtral", code=3).stderr
    assert "sudo does not let this user start voxtral.service" in said
    assert f"{USER} ALL=(root) NOPASSWD: /usr/bin/systemctl start voxtral.service" in said
    assert "`stoker install voxtral --dry-run`" in said
    home.run("down")


def test_a_daemon_that_may_gain_no_privileges_is_told_which_unit_it_needs(voxtral: Box) -> None:
    voxtral.allow(("voxtral.service",))
    home = user_home(voxtral)
    home.prefix = (*home.prefix, "setpriv", "--no-new-privs")
    said = home.run("up", "voxtral", code=3).stderr
    assert "sudo cannot start voxtral.service for the daemon" in said
    assert "a daemon's unit that lets it" in said
    home.run("down")
    home.prefix = home.prefix[:-2]
    assert home.json("up", "voxtral")["state"] == "READY"
    home.run("down")
    assert voxtral.systemd.show("voxtral.service", "ActiveState") == "inactive"
