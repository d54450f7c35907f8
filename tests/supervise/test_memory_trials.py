"""Engines that really eat memory, on a machine that holds nothing else: none may push what is available below the floor.

The machine's memory is counted as its size less what the engines' processes hold, so that no other program disturbs it.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import IO, NamedTuple

import psutil
import pytest

import memory_watcher
from memory_eater import write_eater
from memory_watcher import available_bytes
from small_machine import NoGate
from stoker.config import LimitsConfig, Paths, demo_model
from stoker.flows.planning import make_plan
from stoker.records import MIB, RESTING, Endpoint, Memory, Plan, Proof, State, Wish, say_bytes
from stoker.supervise.hands import Tools
from stoker.supervise.process import find_marked
from stoker.supervise.supervisor import Supervisor

TOTAL_BYTES, FLOOR_BYTES = 2560 * MIB, 768 * MIB
TRIALS = int(os.environ.get("STOKER_EATERS", "4"))
SEED = int(os.environ.get("STOKER_FAULT_SEED", "1"))
STILL_S = 0.03  # whoever looks every 2 ms and is kept from it for so long shares its cores, and so does the watchdog
LEAKY = "leaky"
INSTANCE = "trials"
LIMITS = LimitsConfig(memory_floor_bytes=FLOOR_BYTES, stop_grace_s=0.2, settle_s=20.0, memory_wait_s=5.0, restarts=0)


class Look(NamedTuple):
    """The least that was available, and the longest pause between two looks."""

    low_bytes: int
    longest_s: float


class SmallMachine:
    """A machine whose memory only the processes named in a file take, with somebody beside who looks all the time."""

    def __init__(self, pids: Path) -> None:
        self.pids = pids
        pids.touch()

    def read(self) -> Memory:
        """Counts what those processes hold."""
        left_bytes = available_bytes(TOTAL_BYTES, self.pids)
        return Memory(TOTAL_BYTES, left_bytes, left_bytes, 0, 0, 0)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Has it looked at."""
        words = [sys.executable, "-P", memory_watcher.__file__, str(TOTAL_BYTES), str(self.pids)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as self._watcher:
            self.look_back()
            yield
            self._pipes()[0].close()

    def look_back(self) -> Look:
        """Returns what was seen since the last call, and forgets whose memory it was."""
        to, said = self._pipes()
        print(file=to, flush=True)
        low_bytes, longest_s = said.readline().split()
        self.pids.write_text("")
        return Look(int(low_bytes), float(longest_s))

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        assert self._watcher.stdin
        assert self._watcher.stdout
        return self._watcher.stdin, self._watcher.stdout


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


async def live(machine: SmallMachine, folder: Path, plans: Iterator[Plan]) -> None:
    """Starts one plan after the other, until enough were stopped in time while the machine let its daemon act.

    One in which others had the cores meanwhile tells nothing of the daemon, and another is tried.
    """
    tools = Tools(
        paths=Paths(state=folder, config=folder / "stoker.toml"), limits=LIMITS, instance=INSTANCE, engine_key="k",
        read_memory=machine.read, is_healthy=is_healthy, prove=prove, gate=NoGate(), in_flight=lambda service: 0,
        heard_at=lambda service: 0.0,
        read_counters=no_counters, keep_start=lambda start: None,
        cuda_counts_cache=lambda: False, has_gpu=lambda: False,
    )  # fmt: skip
    supervisor = Supervisor(tools, [], lambda saved: None)
    shown, still, others = 0, 0, set(psutil.Process().children())  # a daemon that other tests share
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(supervisor.run())
        while shown < TRIALS:
            plan = next(plans)
            owner = await supervisor.start(plan, "a trial")
            while owner.service.state not in RESTING:  # one that leaks is READY for a while
                await owner.await_change(limit_s=60.0)
            assert owner.service.state is State.FAILED, owner.service
            assert machine.read().available_bytes >= TOTAL_BYTES - 256 * MIB, "it settled before the memory was back"
            assert "stopped before the machine ran out of memory" in (owner.service.why or ""), owner.service
            look = machine.look_back()
            if look.low_bytes >= FLOOR_BYTES:
                shown += 1
            else:
                assert look.longest_s > STILL_S, f"{say_bytes(look.low_bytes)} were left, seed {SEED}"
                still += 1
                assert still <= TRIALS, "a machine that is so busy shows nothing"
        while set(psutil.Process().children()) - others:  # the last is dead, and reaped a moment later
            await asyncio.sleep(0.01)
        running.cancel()


@pytest.mark.parametrize("kind", [eats, holds, gives_back_slowly, leaks], ids=lambda kind: kind.__name__)
def test_no_engine_takes_the_machine_below_its_floor(
    tmp_path: Path, kind: Callable[[random.Random], dict[str, object]]
) -> None:
    chance, machine = random.Random(SEED), SmallMachine(tmp_path / "pids")
    plans = (plan_for(tmp_path / str(number), pids=str(machine.pids), **kind(chance)) for number in count())
    with machine.watched():
        asyncio.run(live(machine, tmp_path, plans))
    assert list(find_marked(f"{INSTANCE}/")) == []
