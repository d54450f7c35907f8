"""Who owns a state folder, and the keys in it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from stoker.box import clock_s
from stoker.config import Paths
from stoker.errors import Refused
from stoker.records import Record

T = TypeVar("T", bound=Record)
LOCK_TRIES, LOCK_PAUSE_S = 20, 0.01


class Owner(Record, frozen=True):
    """The daemon that holds a state folder."""

    pid: int
    since: float
    version: str


@contextlib.contextmanager
def own_state(paths: Paths, version: str) -> Iterator[None]:
    """Holds the state folder for this process; raises Refused naming the daemon that holds it already.

    The kernel lets go of the lock when the process ends, however it ends, so there is no stale lock to clean up.
    """
    make_state_folder(paths)
    descriptor = os.open(paths.lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if not take_lock(descriptor):
            raise _held(paths)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, msgspec.json.encode(Owner(os.getpid(), clock_s(), version)))
        yield
    finally:
        os.close(descriptor)


def take_lock(descriptor: int) -> bool:
    """Takes the lock; tries for a moment, since a reader that looks who owns it holds it for an instant."""
    for _ in range(LOCK_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(LOCK_PAUSE_S)
        else:
            return True
    return False


def _held(paths: Paths) -> Refused:
    owner = read_owner(paths)
    who = f"pid {owner.pid}" if owner else "another daemon"
    return Refused(
        f"{paths.state} belongs to a daemon that is running ({who})",
        why="two daemons on one state folder would start two engines for one service",
        next_step="use that one (`stoker status`), stop it (`stoker down`), or set STOKER_STATE to another folder",
    )


def read_owner(paths: Paths) -> Owner | None:
    """Returns the daemon that holds the state folder, or None if none does."""
    return read_locked(paths.lock, Owner)


def read_locked(lock: Path, kind: type[T]) -> T | None:
    """Returns what the process that holds a lock wrote into it, or None where none holds it."""
    try:
        with lock.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return msgspec.json.decode(file.read(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None
    return None


def make_state_folder(paths: Paths) -> None:
    """Makes the state folder, for this user alone; raises Refused where it cannot be written."""
    try:
        paths.state.mkdir(parents=True, exist_ok=True, mode=0o700)
        paths.state.chmod(0o700)  # it may have been made by somebody else, for all to read
        paths.engine_log("x").parent.mkdir(exist_ok=True, mode=0o700)
        probe = paths.state / ".writable"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as problem:
        raise Refused(
            f"the state folder {paths.state} cannot be written",
            why=problem.strerror or str(problem),
            next_step="make it yours (chown), free some space, or set STOKER_STATE to another folder",
        ) from problem


def read_or_make_key(file: Path) -> str:
    """Returns the key in a file; makes one, readable by this user alone, where there is none."""
    try:
        key = next(iter(file.read_text().split()), "")
    except FileNotFoundError:
        key = ""
    except OSError as problem:
        raise Refused(f"the key file {file} cannot be read", why=problem.strerror or str(problem)) from problem
    if key:
        file.chmod(0o600)
        return key
    import secrets  # it brings OpenSSL with it, which most starts do without

    key = f"sk-stoker-{secrets.token_urlsafe(32)}"
    fresh = file.with_suffix(".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as out:
        out.write(key + "\n")
    fresh.rename(file)
    return key


def instance_of(paths: Paths) -> str:
    """Returns a short name for a state folder, by which its engines are known."""
    import hashlib  # it brings OpenSSL with it, which takes as long to load as all the rest

    return hashlib.sha256(str(paths.state).encode()).hexdigest()[:12]
