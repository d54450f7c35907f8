"""Reads how a process was started: its words, its variables, its folder, and whose it is."""

from __future__ import annotations

import contextlib
import pwd
from pathlib import Path

import psutil

from stoker.records import Record


class Started(Record, frozen=True):
    """A process of this machine; `environment` and `folder` are None where they may not be read."""

    pid: int
    words: tuple[str, ...]
    environment: dict[str, str] | None
    folder: str | None
    uid: int
    user: str
    is_inside: bool


def read_started(pid: int) -> Started | None:
    """Returns a living process; None where there is none, or only what is left of one."""
    with contextlib.suppress(psutil.Error, OSError, ValueError):
        process = psutil.Process(pid)
        if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return None
        uid = process.uids().real
        return Started(
            pid=pid, words=tuple(_read(pid, "cmdline") or ()), environment=_environment(pid), folder=_folder(pid),
            uid=uid, user=_user_name(uid), is_inside=_depth(pid) > _depth(None),
        )  # fmt: skip
    return None


def _read(pid: int, what: str) -> list[str] | None:
    try:
        text = Path(f"/proc/{pid}/{what}").read_bytes().decode(errors="replace")
    except OSError:
        return None
    return text.removesuffix("\0").split("\0") if text else []


def _environment(pid: int) -> dict[str, str] | None:
    pairs = _read(pid, "environ")
    return None if pairs is None else dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def _folder(pid: int) -> str | None:
    with contextlib.suppress(OSError):
        return str(Path(f"/proc/{pid}/cwd").readlink())
    return None


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _depth(pid: int | None) -> int:
    """Returns in how many nested pid namespaces a process has a number: a container's has one more than we."""
    text = Path(f"/proc/{pid or 'self'}/status").read_text(errors="replace")
    return next((len(line.split()) - 1 for line in text.splitlines() if line.startswith("NSpid:")), 1)


def read_kin(pid: int) -> tuple[list[int], list[int]]:
    """Returns a process's ancestors, the nearest first, and its descendants."""
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        return [one.pid for one in process.parents()], [one.pid for one in process.children(recursive=True)]
    return [], []
