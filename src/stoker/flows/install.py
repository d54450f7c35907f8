"""Shows how a machine would run Stoker and one of its services from systemd, without putting anything in place.

Two units and one sudoers file:

- `stoker.service` is the daemon, shared by all services and run as their user. It keeps its children: a crash of the daemon
  must not end the engines, which the next daemon takes back.
- `stoker-SERVICE.service` runs `stoker up SERVICE` once, and `stoker down SERVICE` when it is stopped. An engine as the
  unit's own program would start without a memory gate, restart into memory that is not back yet, and be unknown to the
  gateway; this way systemd and a person at the command line ask the same daemon. `start` returns when the model has
  answered, and fails with the reason when it has not. The price: the unit says that the service was brought up, not that it
  is READY now, so after a failure it is `restart` that acts, and `stoker status` that tells the truth.
- the sudoers file lets the user, and a dashboard that runs as them, start, stop and restart that one unit; and the daemon
  start and stop the unit that the service is, where it is one. Its own unit then does without NoNewPrivileges, as sudo must.
"""

from __future__ import annotations

import math
import os
import pwd
import shutil
import sys
from pathlib import Path

import msgspec

from stoker.config import DEMO, Config, LimitsConfig, Paths, find_paths, read_config
from stoker.errors import Refused, WrongUse, service_hint
from stoker.flows.planning import served_names
from stoker.launch.names import check_path, check_user, sudoers_file_name, unit_name
from stoker.launch.sudoers import SYSTEM_PATH, render_sudoers
from stoker.launch.unit import render_unit
from stoker.records import InstallView, Pairs, Record, RenderedFile, UnitLaunch

DAEMON = "stoker"
UNIT_FOLDER, SUDOERS_FOLDER = "/etc/systemd/system", "/etc/sudoers.d"
SLACK_S = 30
RESTART_PAUSE_S, RESTART_TRIES, RESTART_WINDOW_S = 2, 5, 600
OOM_SCORE = 500


class Caller(Record, frozen=True):
    """Who runs the verb, and with which variables."""

    uid: int
    environment: dict[str, str]


class Installed(Record, frozen=True):
    """Everything that decides what is put in place for a service. `own_unit` is the unit that the service itself is."""

    service: str
    user: str
    uid: int
    paths: Paths
    limits: LimitsConfig
    unit_folder: str
    environment: Pairs
    own_unit: str | None
    uses_sudo: bool


def show_install(
    service: str, user: str | None, unit_folder: str = UNIT_FOLDER, caller: Caller | None = None
) -> InstallView:
    """Returns the files and commands for one service, also for a caller who is root, and why that is refused.

    Raises WrongUse or Refused where they could not work.
    """
    caller = caller or Caller(os.getuid(), dict(os.environ))
    view = view_of(plan_install(service, user, unit_folder, caller, shows_root=True))
    return msgspec.structs.replace(view, refused=str(_no_root())) if user is None and caller.uid == 0 else view


def plan_install(service: str, user: str | None, unit_folder: str, caller: Caller, *, shows_root: bool = False) -> Installed:
    """Returns what decides the files; raises WrongUse or Refused where they could not work."""
    owner = pwd.getpwuid(0) if shows_root and user is None and caller.uid == 0 else find_user(user, caller)
    paths = _paths_of(owner, caller)
    config = read_config(paths.config)
    _check_known(service, config)
    folder = check_path(unit_folder, "the folder of units").rstrip("/")
    wish = config.services.get(service)
    return Installed(
        service, owner.pw_name, owner.pw_uid, paths, config.limits, folder, _search_path(owner, caller),
        own_unit=wish.unit if wish else None, uses_sudo=any(one.unit for one in config.services.values()),
    )  # fmt: skip


def view_of(installed: Installed) -> InstallView:
    """Returns the files and the commands that put them in place."""
    service, user, folders = installed.service, installed.user, _folders(installed.paths)
    systemctl = shutil.which("systemctl", path=SYSTEM_PATH) or "/usr/bin/systemctl"
    units = (
        _daemon_unit(user, (*folders, *installed.environment), installed.limits, installed.uses_sudo),
        _service_unit(service, user, folders, installed.limits),
    )
    files = [RenderedFile(f"{installed.unit_folder}/{unit.name}.service", "0644", render_unit(unit)) for unit in units]
    own = (installed.own_unit,) if installed.own_unit else ()
    sudoers = render_sudoers(user, (service,), systemctl=systemctl, units=own)
    files.append(RenderedFile(f"{SUDOERS_FOLDER}/{sudoers_file_name(service)}", "0440", sudoers))
    return InstallView(service, user, tuple(files), _commands(files, service, user))


def find_user(name: str | None, caller: Caller) -> pwd.struct_passwd:
    """Returns who runs the daemon: the one that is named, else the caller; raises Refused for root."""
    try:
        owner = pwd.getpwnam(check_user(name)) if name else pwd.getpwuid(caller.uid)
    except KeyError as problem:
        raise WrongUse(f"there is no user {name or caller.uid} on this machine") from problem
    if owner.pw_uid == 0:
        raise _no_root()
    check_user(owner.pw_name)
    return owner


def _no_root() -> Refused:
    return Refused(
        "Stoker should not run as root",
        why="an engine runs what a model's files bring along, and root needs no sudoers lines",
        next_step="name the user who owns the models: --user NAME",
    )


def _paths_of(owner: pwd.struct_passwd, caller: Caller) -> Paths:
    """Returns the folders of the unit's user: the caller's variables count for the caller, STOKER_* for anybody."""
    own = owner.pw_uid == caller.uid
    kept = {name: value for name, value in caller.environment.items() if own or name.startswith("STOKER_")}
    return find_paths({**kept, "HOME": owner.pw_dir})


def _check_known(service: str, config: Config) -> None:
    unit_name(service)
    if service not in config.services and service != DEMO:
        known = served_names(config)
        raise WrongUse(
            f"there is no service called `{service}` in {config.source or 'stoker.toml'}",
            why="a unit starts a service by its name, so that what it serves is decided in one place",
            next_step=service_hint(service, known, f"add [service.{service}], or name one of: {', '.join(known)}"),
        )


def _daemon_unit(user: str, environment: Pairs, limits: LimitsConfig, uses_sudo: bool) -> UnitLaunch:
    return UnitLaunch(
        name=DAEMON, description="Stoker, which tends the LLM engines of this machine", user=user,
        kind="notify", argv=_stoker("serve"), environment=environment,  # what follows it finds it listening
        start_timeout_s=SLACK_S, stop_timeout_s=_seconds(limits.drain_s, limits.stop_grace_s),
        restart_pause_s=RESTART_PAUSE_S, restart_tries=RESTART_TRIES, restart_window_s=RESTART_WINDOW_S,
        final_exit_codes=(WrongUse.exit_code, Refused.exit_code), keeps_children=True, oom_score_adjust=OOM_SCORE,
        uses_sudo=uses_sudo,
    )  # fmt: skip


def _service_unit(service: str, user: str, environment: Pairs, limits: LimitsConfig) -> UnitLaunch:
    return UnitLaunch(
        name=unit_name(service), description=f"{service}, served by Stoker", user=user, kind="oneshot",
        argv=_stoker("up", service), stop_argv=_stoker("down", service), environment=environment,
        wants=(f"{DAEMON}.service",),
        stop_timeout_s=_seconds(limits.drain_s, limits.stop_grace_s, limits.settle_s),
    )  # fmt: skip


def _stoker(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-P", "-m", "stoker", *words)  # the very Stoker that printed the unit, wherever it lives


def _folders(paths: Paths) -> Pairs:
    return (("STOKER_STATE", str(paths.state)), ("STOKER_CONFIG", str(paths.config)))


def _search_path(owner: pwd.struct_passwd, caller: Caller) -> Pairs:
    """Returns the caller's PATH where the daemon is theirs: systemd's has no /usr/local/cuda/bin, where ptxas lies."""
    whole = [folder for folder in caller.environment.get("PATH", "").split(":") if folder.startswith("/")]
    return (("PATH", ":".join(whole)),) if whole and owner.pw_uid == caller.uid else ()


def _seconds(*limits_s: float) -> int:
    return math.ceil(sum(limits_s)) + SLACK_S


def _commands(files: list[RenderedFile], service: str, user: str) -> tuple[str, ...]:
    """Returns what root would type in a folder that holds the files under their own names."""
    names = [Path(file.path).name for file in files]
    units, sudoers = names[:-1], names[-1]
    return (
        f"systemd-analyze verify {' '.join(f'./{name}' for name in units)}",
        f"visudo -c -f {sudoers}",
        f"sudo install -m 0644 {' '.join(units)} {Path(files[0].path).parent}/",
        f"sudo install -m 0440 {sudoers} {SUDOERS_FOLDER}/",
        # With RemoveIPC=yes, its default, logind deletes the shared memory of a user's engines at their last logout.
        f"sudo loginctl enable-linger {user}",
        "sudo systemctl daemon-reload",
        f"sudo systemctl enable --now {unit_name(service)}.service",
    )
