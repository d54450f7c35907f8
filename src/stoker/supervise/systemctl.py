"""Talks to systemd through `systemctl`: reads a unit, and starts or stops it with the words that a sudoers line allows.

Root asks systemd itself, and everybody their own user manager. For the system's units all others go through `sudo -n`, whose
lines `stoker install` writes; reading needs none.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from stoker.errors import NotReadyInTime, Refused, StokerError
from stoker.launch.sudoers import SYSTEM_PATH, action_words, sudoers_line
from stoker.records import UnitAction

BOOTED = Path("/run/systemd/system")  # what sd_booted(3) looks at
READ_LIMIT_S = 10.0
PROPERTIES = (
    "LoadState",
    "ActiveState",
    "SubState",
    "Result",
    "MainPID",
    "ExecMainCode",
    "ExecMainStatus",
    "ControlGroup",
    "Job",
)
SUDO_REFUSES = re.compile(
    r"^sudo: |is not allowed to (?:execute|run)|is not in the sudoers file|may not run sudo", re.MULTILINE
)
NO_NEW_PRIVILEGES = "no new privileges"
DOWN = frozenset({"inactive", "failed"})


class UnitState(NamedTuple):
    """A unit as `systemctl show` tells it; `pid` is None where it has no main process."""

    load: str
    active: str
    sub: str
    result: str
    pid: int | None
    exit_kind: int
    exit_status: int
    control_group: str
    has_job: bool


class Said(NamedTuple):
    """How a program ended, and what it printed."""

    code: int
    out: str
    problem: str


class Manager(NamedTuple):
    """One of the machine's service managers: the system's, or this user's own."""

    systemctl: str
    is_own: bool

    @property
    def words(self) -> tuple[str, ...]:
        """The program and the option that names the manager."""
        return (self.systemctl, "--user") if self.is_own else (self.systemctl,)

    async def read(self, unit: str) -> UnitState:
        """Returns what a unit does; raises StokerError where the manager does not answer."""
        said = await _run((*self.words, "show", f"--property={','.join(PROPERTIES)}", unit), READ_LIMIT_S)
        if said.code:
            raise StokerError(f"systemd does not tell of {unit}", why=said.problem or f"exit code {said.code}")
        return _parse(said.out)

    async def act(self, action: UnitAction, unit: str, service: str, limit_s: float) -> None:
        """Starts or stops a unit and waits until that is done; raises StokerError with systemd's or sudo's own words."""
        words = action_words(action, unit, self.systemctl)
        if self.is_own:
            words = (*self.words, action, unit)
        elif os.geteuid() != 0:
            words = (_find_program("sudo"), "-n", *words)
        said = await _run(words, limit_s)
        if said.code == 0:
            return
        if "sudo" in Path(words[0]).name and SUDO_REFUSES.search(said.problem):
            raise _not_allowed(action, unit, service, self.systemctl, said.problem)
        raise StokerError(
            f"`{' '.join(words)}` failed", why=said.problem or f"exit code {said.code}", next_step=f"journalctl -u {unit}"
        )

    async def kill(self, unit: str) -> None:
        """Kills all processes of a unit at once, where that needs no line of sudoers; else the stop has to do."""
        if self.is_own or os.geteuid() == 0:
            await _run((*self.words, "kill", "--signal=SIGKILL", unit), READ_LIMIT_S)


def _not_allowed(action: UnitAction, unit: str, service: str, systemctl: str, problem: str) -> Refused:
    last = problem.strip().splitlines()[-1]
    if NO_NEW_PRIVILEGES in problem:
        hint = f"`stoker install {service} --dry-run` prints a daemon's unit that lets it: put that in place"
        return Refused(f"sudo cannot {action} {unit} for the daemon", why=last, next_step=hint)
    line = sudoers_line(pwd.getpwuid(os.geteuid()).pw_name, action_words(action, unit, systemctl))
    return Refused(
        f"sudo does not let this user {action} {unit}",
        why=last,
        next_step=f"`stoker install {service} --dry-run` prints the file for sudoers; this line is missing: {line}",
    )


def is_booted() -> bool:
    """Tells whether systemd runs this machine."""
    return BOOTED.exists()


async def find_manager(unit: str) -> Manager:
    """Returns the manager that knows a unit, the system's first; raises Refused where none does."""
    if not is_booted():
        raise Refused(
            f"{unit} cannot be started: there is no systemd here",
            why=f"{BOOTED} is missing, so systemd is not what started this machine, or this is a container",
            next_step='name the program itself: `program` instead of `unit`, with engine = "command"',
        )
    systemctl = _find_program("systemctl")
    problems = []
    for manager in (Manager(systemctl, False), *([Manager(systemctl, True)] if os.geteuid() else [])):
        try:
            state = await manager.read(unit)
        except StokerError as problem:  # such as a user without a manager of their own
            problems.append(problem.why)
            continue
        if state.load != "not-found":
            return manager
    raise Refused(
        f"systemd knows no unit {unit}",
        why="; ".join(problems),
        next_step="`systemctl list-unit-files --type=service` lists them; after a new file: `systemctl daemon-reload`",
    )


def _find_program(name: str) -> str:
    found = shutil.which(name, path=SYSTEM_PATH)
    if found is None:
        raise Refused(f"{name} is not installed", why=f"it is in none of {SYSTEM_PATH}")
    return found


def _parse(text: str) -> UnitState:
    said = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    number = {name: int(said.get(name) or 0) for name in ("MainPID", "ExecMainCode", "ExecMainStatus", "Job")}
    return UnitState(
        load=said.get("LoadState", ""), active=said.get("ActiveState", ""), sub=said.get("SubState", ""),
        result=said.get("Result", ""), pid=number["MainPID"] or None, exit_kind=number["ExecMainCode"],
        exit_status=number["ExecMainStatus"], control_group=said.get("ControlGroup", ""), has_job=number["Job"] > 0,
    )  # fmt: skip


async def _run(argv: Sequence[str], limit_s: float) -> Said:
    """Runs a program without input; raises NotReadyInTime where it outlasts its limit."""
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment()
    )
    try:
        async with asyncio.timeout(limit_s):
            out, problem = await process.communicate()
    except TimeoutError as problem_:
        raise NotReadyInTime(f"`{' '.join(argv)}` did not end within {limit_s:g} s") from problem_
    finally:
        if process.returncode is None:
            with contextlib.suppress(OSError):  # sudo's runs as root: it ends when systemd has answered it
                process.kill()
    return Said(process.returncode or 0, out.decode(errors="replace"), problem.decode(errors="replace").strip())


def _environment() -> dict[str, str]:
    own = {"XDG_RUNTIME_DIR": f"/run/user/{os.getuid()}"}  # a daemon that systemd started lacks it
    return {**own, **os.environ, "LC_ALL": "C", "SYSTEMD_PAGER": "", "SYSTEMD_COLORS": "0"}
