"""An engine that somebody else started: watched and ended like one of ours, but started again only if that was asked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import msgspec

from stoker.box import is_running
from stoker.errors import Refused
from stoker.launch.keys import read_key
from stoker.records import AdoptedProcess, Handle, Plan
from stoker.supervise.held import read_resident, with_held
from stoker.supervise.journal import append_note
from stoker.supervise.process import EngineProcess, read_boot_id, read_start_ticks
from stoker.supervise.runtimes import Running, Start
from stoker.supervise.runtimes.process import ProcessRuntime
from stoker.supervise.tree import Tree, stop_tree

LOOK_S = 1.0


class RunningAdopted:
    """The first process of an adopted engine, and what belongs to it. `key` is what it asks of its clients, if anything."""

    def __init__(self, process: EngineProcess, tree: Tree) -> None:
        self._process = process
        self.tree = tree
        self.key = read_key(_read_words(self.pid, "cmdline"), _read_words(self.pid, "environ"))

    @property
    def pid(self) -> int:
        """Its first process."""
        return self._process.pid

    async def wait(self) -> str:
        """Waits until the first process has ended, and meanwhile remembers which others belong to it."""
        while not await self._ends_within(LOOK_S):
            self.tree.look()
        return "how is unknown: it was not started by Stoker, which is not told"

    async def _ends_within(self, limit_s: float) -> bool:
        try:
            async with asyncio.timeout(limit_s):
                await self._process.wait()
        except TimeoutError:
            return False
        return True

    def is_alive(self) -> bool:
        """Tells whether the first process still runs."""
        return is_running(self.pid)

    def pids(self) -> list[int]:
        """Returns its processes."""
        return self.tree.pids()

    def memory_bytes(self) -> int | None:
        """Adds up its processes."""
        return read_resident(self.pids())

    def close(self) -> None:
        """Lets go of the process without ending it."""
        self._process.close()


def is_there(adopted: AdoptedProcess) -> bool:
    """Tells whether the very process that was adopted still lives."""
    return adopted.boot_id == read_boot_id() and read_start_ticks(adopted.pid) == adopted.start_ticks


def say_output(pid: int) -> str:
    """Returns where a process's output goes: nobody but who started it can read what it printed."""
    try:
        place = str(Path(f"/proc/{pid}/fd/1").readlink())
    except OSError:
        place = ""
    if place.startswith("/dev/null"):
        return "what it prints is thrown away (/dev/null)"
    if place.startswith("/") and not place.startswith("/dev/"):
        return f"what it prints goes to {place}"
    return f"what it prints goes where it was started ({place or 'unknown'}) and cannot be read here"


class AdoptedRuntime:
    """Takes a running engine over, and starts it as a process of ours once it has ended, if that was asked for."""

    def __init__(self, plan: Plan, adopted: AdoptedProcess, instance: str) -> None:
        self._adopted = adopted
        self._own = ProcessRuntime(instance, plan.service)

    async def start(self, start: Start, handle: Handle, save: Callable[[Handle], None]) -> Running:
        """Returns the adopted engine where it lives; else starts it anew, or raises Refused where nobody asked for that."""
        running = self._attach()
        if running is not None:
            found = msgspec.structs.replace(handle, pid=running.pid, start_ticks=self._adopted.start_ticks)
            save(found)
            save(await asyncio.to_thread(with_held, found, running.pids()))
            append_note(start.log, f"pid {running.pid} was adopted; {say_output(running.pid)}")
            return running
        if not self._adopted.restart:
            raise Refused(
                f"pid {self._adopted.pid}, which was adopted, has ended",
                why="it is started again only where it was adopted with --restart",
                next_step="start it as before and `stoker adopt` it again, or make a service of it in stoker.toml",
            )
        return await self._own.start(start, handle, save)

    async def find(self, handle: Handle) -> Running | None:
        """Returns the adopted engine, or the one that was started after it."""
        if handle.pid is None:  # the daemon was killed while it took the engine over
            return self._attach() or await self._own.find(handle)
        if handle.pid == self._adopted.pid and handle.start_ticks == self._adopted.start_ticks:
            return self._attach()
        return await self._own.find(handle)

    def _attach(self) -> RunningAdopted | None:
        if not is_there(self._adopted):
            return None
        with contextlib.suppress(OSError):
            process = EngineProcess(self._adopted.pid)
            tree = self._tree()
            tree.look()
            return RunningAdopted(process, tree)
        return None

    def _tree(self) -> Tree:
        members = dict(self._adopted.members) if self._adopted.boot_id == read_boot_id() else {}
        return Tree(self._adopted.pid, self._adopted.start_ticks, members)

    async def keep_good(self, running: Running, image: str) -> None:
        """Does nothing: there is no image that could be taken away."""

    async def stop(self, running: Running | None, grace_s: float, kill_limit_s: float) -> str:
        """Ends what was adopted and is left of it, and everything that was started after it; nothing else of the user's."""
        if running is None and is_there(self._adopted):  # it was not taken over yet, or not again
            return ""
        tree = running.tree if isinstance(running, RunningAdopted) else self._tree()
        left = await stop_tree(tree, grace_s, kill_limit_s)
        if left:
            return f"pid {', '.join(map(str, left))} outlived SIGKILL: the kernel or its driver holds it"
        return await self._own.stop(None if isinstance(running, RunningAdopted) else running, grace_s, kill_limit_s)


def _read_words(pid: int, what: str) -> tuple[str, ...]:
    with contextlib.suppress(OSError):
        return tuple(Path(f"/proc/{pid}/{what}").read_bytes().decode(errors="replace").split("\0"))
    return ()
