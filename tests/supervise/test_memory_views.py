"""What views say of the engines' memory, which is read beside the event loop: a walk through /proc takes its time."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path

from no_engine import make_tools
from small_machine import SmallMachine
from stoker.records import GIB, MIB, SavedService, Service, State
from stoker.supervise.supervisor import Supervisor
from support import make_plan

LIMIT_S = 30.0
READY = Service(State.READY, time.time(), "it answered", wanted=True, was_ready=True)


class SlowToRead:
    """An engine at whose processes the kernel takes long to look: until it is let go."""

    pid = os.getpid()

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.looks = 0
        self.bytes = 100 * MIB

    async def wait(self) -> str:
        return "it ended"

    def is_alive(self) -> bool:
        return True

    def pids(self) -> list[int]:
        return [self.pid]

    def memory_bytes(self) -> int | None:
        self.looks += 1
        assert self.let_go.wait(LIMIT_S), "nobody else had his turn while this was read"
        return self.bytes

    def close(self) -> None:
        """Holds nothing."""


def make_supervisor(folder: Path, running: SlowToRead) -> Supervisor:
    saved = SavedService(make_plan(service="chat"), READY)
    supervisor = Supervisor(make_tools(folder, SmallMachine(folder / "pids", 4 * GIB)), [saved], lambda one: None)
    supervisor.owners["chat"]._hands.running = running
    return supervisor


def test_the_event_loop_goes_on_while_memory_is_read(tmp_path: Path) -> None:
    running = SlowToRead()

    async def story() -> None:
        supervisor = make_supervisor(tmp_path, running)
        looks = asyncio.ensure_future(supervisor.look_at_memory())
        while not running.looks:
            await asyncio.sleep(0)
        assert supervisor.views()[0].memory_bytes is None  # and nobody who only asks for views waits for it
        running.let_go.set()
        await looks
        assert supervisor.views()[0].memory_bytes == 100 * MIB

    asyncio.run(story())


def test_many_who_ask_at_once_are_told_by_one_look_and_a_new_state_makes_another(tmp_path: Path) -> None:
    running = SlowToRead()
    running.let_go.set()

    async def story() -> None:
        supervisor = make_supervisor(tmp_path, running)
        await asyncio.gather(*(supervisor.look_at_memory() for _ in range(20)))
        assert running.looks == 1
        running.bytes = 200 * MIB
        owner = supervisor.owners["chat"]
        owner.service = Service(State.DRAINING, time.time(), "it is told to stop")
        await supervisor.look_at_memory()
        assert (running.looks, owner.view().memory_bytes) == (2, 200 * MIB)

    asyncio.run(story())


def test_what_a_former_engine_held_is_not_said_of_the_next(tmp_path: Path) -> None:
    running = SlowToRead()
    running.let_go.set()

    async def story() -> None:
        supervisor = make_supervisor(tmp_path, running)
        await supervisor.look_at_memory()
        owner = supervisor.owners["chat"]
        owner._hands.running = SlowToRead()
        assert owner.view().memory_bytes is None
        owner._hands.running = None
        assert owner.view().memory_bytes is None

    asyncio.run(story())
