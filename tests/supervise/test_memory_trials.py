"""Engines that really eat memory, on a machine that holds nothing else: none may push what is available below the floor.

The machine's memory is counted as its size less what the engines' processes hold, so that no other program disturbs it.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from memory_eater import write_eater
from small_machine import NoGate
from stoker.config import LimitsConfig, Paths, demo_model
from stoker.flows.planning import make_plan
from stoker.records import MIB, RESTING, Endpoint, Memory, Plan, Proof, State, Wish
from stoker.supervise.hands import Tools
from stoker.supervise.process import find_marked
from stoker.supervise.supervisor import Supervisor

TOTAL_BYTES, FLOOR_BYTES = 2560 * MIB, 768 * MIB
TRIALS = 50 if os.environ.get("STOKER_FAULTS") else 4
SEED = int(os.environ.get("STOKER_FAULT_SEED", "1"))
LEAKY = "leaky"
INSTANCE = "trials"
LIMITS = LimitsConfig(memory_floor_bytes=FLOOR_BYTES, stop_grace_s=0.2, settle_s=20.0, memory_wait_s=5.0, restarts=0)


class SmallMachine:
    """A machine whose memory only the processes named in a file take; `low_bytes` is the least that was available."""

    def __init__(self, pids: Path) -> None:
        self.pids = pids
        self.low_bytes = TOTAL_BYTES
        self._ends = threading.Event()
        pids.touch()

    def read(self) -> Memory:
        """Counts what those processes hold."""
        available_bytes = TOTAL_BYTES - sum(_resident(pid) for pid in self.pids.read_text().split())
        self.low_bytes = min(self.low_bytes, available_bytes)
        return Memory(TOTAL_BYTES, available_bytes, available_bytes, 0, 0, 0)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Looks all the time, beside whoever else looks."""
        thread = threading.Thread(target=self._look)
        thread.start()
        yield
        self._ends.set()
        thread.join()

    def _look(self) -> None:
        while not self._ends.wait(0.002):
            self.read()


def _resident(pid: str) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * mmap.PAGESIZE
    except (OSError, IndexError):  # it is gone
        return 0


def plan_for(folder: Path, **task: object) -> Plan:
    """Returns the plan of a service whose engine eats."""
    serves = task.pop("serves", False)
    server = write_eater(folder, take_mib=4000, **task)
    return make_plan(Wish(name=LEAKY if serves else "eater", model=str(demo_model()), server=str(server), gate=()))


def eats(chance: random.Random) -> dict[str, object]:
    """Takes more than the machine has above its floor while it loads, at whatever speed, in a child of its own maybe."""
    return {"mib_per_s": chance.choice((None, None, 3000, 800)), "orphan": chance.random() < 0.3}


def holds(chance: random.Random) -> dict[str, object]:
    """Holds what it took when it is asked to end."""
    return {"mib_per_s": chance.choice((None, 1500)), "ignores_term": True}


def gives_back_slowly(chance: random.Random) -> dict[str, object]:
    """Gives back little by little what it took."""
    return {"mib_per_s": chance.choice((None, 1500)), "gives_back_s": chance.uniform(0.2, 1.5)}


def leaks(chance: random.Random) -> dict[str, object]:
    """Proves itself and serves, and takes ever more."""
    return {"mib_per_s": chance.choice((300, 1000, 2500)), "serves": True, "ignores_term": chance.random() < 0.5}


async def is_healthy(endpoint: Endpoint, path: str) -> bool:
    """Only one that leaks ever is."""
    return endpoint.service == LEAKY


async def no_counters(endpoint: Endpoint) -> None:
    """It has none."""


async def prove(endpoint: Endpoint) -> Proof:
    """Whoever is healthy answers."""
    return Proof(endpoint.model, "hello", 1, 0.0)


async def live(machine: SmallMachine, folder: Path, plans: list[Plan]) -> list[str]:
    """Starts one plan after the other; returns what became of each."""
    tools = Tools(
        paths=Paths(state=folder, config=folder / "stoker.toml"), limits=LIMITS, instance=INSTANCE, engine_key="k",
        read_memory=machine.read, is_healthy=is_healthy, prove=prove, gate=NoGate(), in_flight=lambda service: 0,
        heard_at=lambda service: 0.0,
        read_counters=no_counters, keep_start=lambda start: None,
        cuda_counts_cache=lambda: False, has_gpu=lambda: False,
    )  # fmt: skip
    supervisor = Supervisor(tools, [], lambda saved: None)
    ends, others = [], set(psutil.Process().children())  # a daemon that other tests share
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(supervisor.run())
        for plan in plans:
            owner = await supervisor.start(plan, "a trial")
            while owner.service.state not in RESTING:  # one that leaks is READY for a while
                await owner.await_change(limit_s=60.0)
            assert owner.service.state is State.FAILED, owner.service
            assert machine.read().available_bytes >= TOTAL_BYTES - 256 * MIB, "it settled before the memory was back"
            ends.append(owner.service.why)
        while set(psutil.Process().children()) - others:  # the last is dead, and reaped a moment later
            await asyncio.sleep(0.01)
        running.cancel()
    return ends


@pytest.mark.parametrize("kind", [eats, holds, gives_back_slowly, leaks], ids=lambda kind: kind.__name__)
def test_no_engine_takes_the_machine_below_its_floor(
    tmp_path: Path, kind: Callable[[random.Random], dict[str, object]]
) -> None:
    chance, machine = random.Random(SEED), SmallMachine(tmp_path / "pids")
    plans = [plan_for(tmp_path / str(number), pids=str(machine.pids), **kind(chance)) for number in range(TRIALS)]
    with machine.watched():
        ends = asyncio.run(live(machine, tmp_path, plans))
    assert all("stopped before the machine ran out of memory" in why for why in ends), ends
    assert machine.low_bytes >= FLOOR_BYTES, f"seed {SEED}"
    assert list(find_marked(f"{INSTANCE}/")) == []
