"""Shows the commands that undo `stoker install` for one service, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

from stoker.flows.install import DAEMON, SUDOERS_FOLDER, Caller, find_user
from stoker.launch.names import PREFIX, check_path, sudoers_file_name, unit_name
from stoker.records import UninstallView

OURS = "# Written by Stoker"


def show_uninstall(service: str, user: str | None, unit_folder: str) -> UninstallView:
    """Returns the commands for what is there, and what stays; raises WrongUse or Refused for names that could mean more."""
    owner = find_user(user, Caller(os.getuid(), dict(os.environ))).pw_name
    folder = Path(check_path(unit_folder, "the folder of units").rstrip("/"))
    own, sudoers = folder / f"{unit_name(service)}.service", Path(SUDOERS_FOLDER) / sudoers_file_name(service)
    commands, kept = _remove_unit(own, "disable --now")
    state = _is_ours(sudoers)
    commands += [f"sudo rm -f {sudoers}"] if state is not False else []
    others = sorted(one.name for one in folder.glob(f"{PREFIX}*.service") if one != own) if folder.is_dir() else []
    daemon = folder / f"{DAEMON}.service"
    if others and daemon.exists():
        kept.append(f"{daemon.name} stays: {', '.join(others)} need it")
    elif own.exists() or daemon.exists():
        more, left = _remove_unit(daemon, "stop")
        commands, kept = commands + more, kept + left
        kept.append(f"{owner} goes on lingering, which others may need: sudo loginctl disable-linger {owner}")
    if any(" systemctl " in command for command in commands):
        commands.append("sudo systemctl daemon-reload")
    return UninstallView(service, owner, tuple(commands), tuple(kept))


def _remove_unit(file: Path, ended_by: str) -> tuple[list[str], list[str]]:
    state = _is_ours(file)
    if state is False:
        return [], [f"{file} stays: Stoker did not write it"] if file.exists() else []
    return [f"sudo systemctl {ended_by} {file.name}", f"sudo rm {file}"], []


def _is_ours(file: Path) -> bool | None:
    """Tells whether a file is there and was written by Stoker; None where only root may know."""
    try:
        return file.read_text(errors="replace").startswith(OURS)
    except PermissionError:
        return None
    except OSError:
        return False
