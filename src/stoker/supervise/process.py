"""Starts, finds, watches and ends engine processes. Signals leave Stoker here and nowhere else.

A process is told from a later one with the same pid by its start time, and is signalled through a pidfd, so that a pid
that was given away meanwhile is never hit. Every process of a launch carries the launch's marker in its environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import psutil

from stoker.launch.process import MARKER_VARIABLE
from stoker.records import Handle, LaunchSpec
from stoker.supervise.segments import read_segments, remove_segments

POLL_S = 0.02
SERVERS_SHARE = 2 / 3  # of an engine's grace, in which its server may end its workers itself
# A process that is just becoming another program has no environment for a moment: of 4,200 new ones 195 were met so, and
# taken for a zombie of ours.
EXEC_LOOKS, EXEC_LOOK_S = 100, 0.0005
OOM_SCORE_ADJUST = "500"  # if the kernel must kill, then the engine and not the daemon or the user's shell


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class EngineProcess:
    """One engine process, started by this daemon or found again."""

    def __init__(self, pid: int, popen: subprocess.Popen[bytes] | None = None) -> None:
        self.pid = pid
        self._popen = popen
        self._pidfd = os.pidfd_open(pid)

    async def wait(self) -> str:
        """Waits until the process has ended and says how: 'exit code 1', 'killed by SIGKILL', or 'ended'."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._pidfd, _settle, ended)
        try:
            await ended
        finally:
            loop.remove_reader(self._pidfd)
        return self._reap()

    def _reap(self) -> str:
        code = self._popen.wait() if self._popen else None
        if code is None:
            return "ended"
        return f"killed by {signal_name(-code)}" if code < 0 else f"exit code {code}"

    def close(self) -> None:
        """Lets go of the process without ending it."""
        if self._pidfd >= 0:  # once: its number may be another file's by now
            os.close(self._pidfd)
            self._pidfd = -1


def signal_name(number: int) -> str:
    """Returns what a signal is called."""
    with contextlib.suppress(ValueError):  # most real-time signals have no name
        return signal.Signals(number).name
    return f"signal {number}"


def start_engine(spec: LaunchSpec, secrets: dict[str, str], log: Path) -> EngineProcess:
    """Starts an engine in a session of its own, its output appended to a file; raises OSError where it cannot.

    The output goes to a file and not to a pipe, so that an engine outlives its daemon.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        popen = subprocess.Popen(
            spec.argv,
            env={**dict(spec.environment), **secrets},
            stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, cwd=spec.folder,
        )  # fmt: skip
    with contextlib.suppress(OSError):
        Path(f"/proc/{popen.pid}/oom_score_adj").write_text(OOM_SCORE_ADJUST)
    return EngineProcess(popen.pid, popen)


def read_start_ticks(pid: int) -> int | None:
    """Returns when a living process started, in clock ticks since boot; None where it is gone or a zombie."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return None if fields[0] in "ZX" else int(fields[19])
    return None


def read_boot_id() -> str:
    """Returns the kernel's name for this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def find_adopted(handle: Handle) -> EngineProcess | None:
    """Returns the engine of a handle if it is the very process that was started then and still lives."""
    if handle.pid is None or handle.boot_id != read_boot_id():
        return None
    if handle.start_ticks is None or read_start_ticks(handle.pid) != handle.start_ticks:
        return None
    with contextlib.suppress(OSError):
        return EngineProcess(handle.pid)
    return None


class Group(NamedTuple):
    """All processes of one launch: those that carry its marker, and those of the sessions that it began.

    The sessions matter because a program that renames itself overwrites its environment: vLLM's EngineCore and its workers
    do, and outlive their server when that is killed. Then a marked process beside them, Python's resource tracker, tells.
    """

    marker: str
    session: int | None = None
    seen: frozenset[int] = frozenset()

    def pids(self) -> list[int]:
        """Returns the living processes of the launch."""
        marked = {pid for pid, _ in find_marked(self.marker)}
        return sorted(marked.union(*map(_find_session, self._sessions(marked))))

    def _sessions(self, marked: Iterable[int]) -> set[int]:
        """The sessions of these processes, and those known before; one whose leader is a stranger is none of ours."""
        known = self.seen | {self.session} | {_read_session(pid) for pid in marked}
        return {session for session in known if session and _is_still_ours(session, self.marker)}

    def with_sessions(self) -> Group:
        """Returns the group with the sessions found now, so that they stay known when their marked processes end first."""
        return self._replace(seen=frozenset(self._sessions(pid for pid, _ in find_marked(self.marker))))

    def leaders(self) -> set[int]:
        """Returns the living processes that lead the sessions of the launch."""
        living = self.pids()
        return {pid for pid in living if _read_session(pid) == pid}

    def holds(self, pid: int) -> bool:
        """Tells whether a process belongs to the launch, by its own marker or a session that is known."""
        with contextlib.suppress(OSError):
            if f"{MARKER_VARIABLE}={self.marker}".encode() in Path(f"/proc/{pid}/environ").read_bytes():
                return True
            return os.getsid(pid) in self._sessions(())
        return False


def _read_session(pid: int) -> int | None:
    with contextlib.suppress(OSError):
        return os.getsid(pid)
    return None


def find_marked(prefix: str) -> Iterator[tuple[int, str]]:
    """Yields (pid, marker) of all living processes whose launch marker starts with the prefix."""
    wanted = f"{MARKER_VARIABLE}={prefix}".encode()
    for pid in _newest_first():
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            word = next((word for word in words if word.startswith(wanted)), None)
            if word is not None and read_start_ticks(pid) is not None:
                yield pid, word.partition(b"=")[2].decode(errors="replace")


def _newest_first() -> list[int]:
    """Returns all pids, the largest first: a process that forks and ends at once is gone by the end of a longer look."""
    return sorted(psutil.pids(), reverse=True)


def _find_session(session: int) -> set[int]:
    found = set()
    for pid in _newest_first():
        with contextlib.suppress(OSError):
            if os.getsid(pid) == session and read_start_ticks(pid) is not None:
                found.add(pid)
    return found


def read_group_memory(group: Group) -> int | None:
    """Returns the resident bytes of all processes of a launch; None if none lives."""
    total: int | None = None
    for pid in group.pids():
        with contextlib.suppress(psutil.Error, OSError):
            total = (total or 0) + psutil.Process(pid).memory_info().rss
    return total


async def stop_group(group: Group, grace_s: float, kill_limit_s: float, servers_share: float = 0.0) -> list[int]:
    """Ends all processes of a launch: SIGTERM, after `grace_s` SIGKILL; returns the pids that outlived even that.

    For `servers_share` of the grace SIGTERM is for those that lead a session alone, as long as one of them lives.
    Without any grace it is stopped where it stands first: an engine that eats memory takes up to a gigabyte more in the time
    that a busy machine needs to find all of its processes.
    """
    if grace_s == 0:
        _signal_leaders_group(group, signal.SIGSTOP)
    group = group.with_sessions()
    found = group.pids()
    if grace_s == 0:
        signal_all(found, signal.SIGSTOP, group.holds)
    segments = read_segments(found)
    if grace_s > 0:
        await _ask_to_end(group, grace_s, servers_share)
    _signal_leaders_group(group, signal.SIGKILL)  # even if none was seen: one that forks and ends at once can hide
    if not await _await_gone(group, kill_limit_s, kill=True):
        return group.pids()
    remove_segments(segments)
    return []


async def _ask_to_end(group: Group, grace_s: float, servers_share: float) -> None:
    """An engine's server ends its workers itself, and takes one for crashed that ends before it was told.

    SGLang 0.5.16 then waits 5 s to look at it. By itself it takes up to 8 s: it looks every 5 s whether it was told to stop
    (seen on an H100: 7 s). None is told twice: llama-server takes a second SIGTERM for "at once".
    """
    end = time.monotonic() + grace_s
    servers_end = end - (1 - servers_share) * grace_s
    servers = group.leaders() if servers_share else set()
    signal_all(servers, signal.SIGTERM, group.holds)
    while servers.intersection(group.pids()) and time.monotonic() < servers_end:
        await asyncio.sleep(POLL_S)
    signal_all([pid for pid in group.pids() if pid not in servers], signal.SIGTERM, group.holds)
    await _await_gone(group, end - time.monotonic(), kill=False)


async def _await_gone(group: Group, limit_s: float, kill: bool) -> bool:
    end = time.monotonic() + limit_s
    while left := group.pids():
        if time.monotonic() > end:
            return False
        if kill:  # again each time: a child may have been forked while its parent was being killed
            _signal_leaders_group(group, signal.SIGKILL)
            signal_all(left, signal.SIGKILL, group.holds)
        await asyncio.sleep(POLL_S)
    return True


def _signal_leaders_group(group: Group, number: signal.Signals) -> None:
    """Signals the engine's own process group in one step, between whose members no fork can slip."""
    if group.session is not None and _is_still_ours(group.session, group.marker):
        with contextlib.suppress(OSError):
            os.killpg(group.session, number)


def _is_still_ours(leader: int, marker: str) -> bool:
    for _ in range(EXEC_LOOKS):
        try:
            environment = Path(f"/proc/{leader}/environ").read_bytes()
        except OSError:  # no such process, so its pid was not given away: as long as the group lives, it cannot be
            return True
        if environment:
            return f"{MARKER_VARIABLE}={marker}".encode() in environment
        if read_start_ticks(leader) is None:  # a zombie has none
            return True
        time.sleep(EXEC_LOOK_S)
    return True


def signal_all(pids: Iterable[int], number: signal.Signals, is_meant: Callable[[int], bool] = lambda pid: pid > 0) -> None:
    """Sends a signal to processes that were just found, and that `is_meant` says are still those once they are held."""
    for pid in pids:
        with contextlib.suppress(OSError):
            pidfd = os.pidfd_open(pid)
            try:
                if is_meant(pid):  # the pidfd holds this process now: its pid cannot be given away any more
                    signal.pidfd_send_signal(pidfd, number)
            finally:
                os.close(pidfd)
