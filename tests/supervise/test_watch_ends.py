"""What becomes of the watch over an engine: it fails alone, and lets go of what it held."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from no_engine import make_tools
from small_machine import SmallMachine
from stoker.launch.process import MARKER_VARIABLE
from stoker.records import GIB, Handle, LaunchSpec, SavedService, Service, State
from stoker.supervise.ending import await_exit
from stoker.supervise.hands import Hands
from stoker.supervise.machine import Exited
from stoker.supervise.process import EngineProcess, Group, read_boot_id, read_start_ticks, start_engine
from stoker.supervise.runtimes.process import RunningProcess
from stoker.supervise.service import ServiceOwner
from support import make_plan


def open_pidfds() -> int:
    """Returns how many processes this one holds on to."""
    links = [str(one.readlink()) for one in Path("/proc/self/fd").iterdir() if one.is_symlink()]
    return sum("pidfd" in link for link in links)


class Unwatchable(RunningProcess):
    """An engine whose watch ends as it would where no further file can be opened."""

    async def wait(self) -> str:
        raise OSError(24, "Too many open files")


def begin(folder: Path, marker: str) -> EngineProcess:
    """Starts a process that lives until it is told to end."""
    words = (sys.executable, "-c", "import signal; signal.pause()")
    spec = LaunchSpec(words, ((MARKER_VARIABLE, marker),), "/health", None)
    return start_engine(spec, {}, folder / "engine.log")


def test_a_watch_that_fails_is_told_as_an_end_and_ends_nothing_else(tmp_path: Path) -> None:
    hands = Hands(make_plan(), make_tools(tmp_path, SmallMachine(tmp_path / "pids", 4 * GIB)), lambda: None)
    engine = begin(tmp_path, "i/small/1")
    try:
        event = asyncio.run(await_exit(hands, Unwatchable(EngineProcess(engine.pid), Group("i/small/", engine.pid)), 1))
    finally:
        os.kill(engine.pid, 9)
        asyncio.run(engine.wait())
        engine.close()
    assert isinstance(event, Exited)
    assert "Stoker itself failed to watch it (OSError: [Errno 24] Too many open files)" in event.why


def test_an_engine_that_is_found_alive_and_ended_is_let_go_of(tmp_path: Path) -> None:
    tools = make_tools(tmp_path, SmallMachine(tmp_path / "pids", 4 * GIB))
    marker = f"{tools.instance}/small/1"
    engine = begin(tmp_path, marker)
    handle = Handle(1, marker, engine.pid, read_start_ticks(engine.pid), read_boot_id(), 1, 0)
    drains = Service(State.DRAINING, 1.0, "you asked for it", launch=1, was_ready=True)
    owner, before = ServiceOwner(SavedService(make_plan(), drains, handle), tools, lambda _: None, None), open_pidfds()  # type: ignore[arg-type]
    asyncio.run(asyncio.wait_for(owner._resume(None), 30))  # type: ignore[arg-type]
    assert (owner.service.state, open_pidfds()) == (State.STOPPED, before)
    asyncio.run(engine.wait())
    engine.close()
