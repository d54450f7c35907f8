"""Plays many boxes in one process: for each the real listener of links, in front of one mock engine.

    python -m benchmarks.boxes_fleet ENGINE_PORT COUNT FOLDER

Prints one JSON line with the links, and then obeys lines on its standard input: `stop N` cuts box N off, `start N` brings it
back; each is answered with the clock when it was done. Ends with its standard input.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from hashlib import sha256
from pathlib import Path

import uvloop

from stoker.config import GatewayConfig
from stoker.flows.boxes.identity import make_server_tls, read_or_make_identity
from stoker.gateway.connection import Limits
from stoker.gateway.directory import Entry
from stoker.gateway.exchange import Headers
from stoker.gateway.link_door import LinkDoor
from stoker.gateway.link_ring import LinkRing
from stoker.gateway.metrics import GatewayMetrics
from stoker.gateway.serving import Serving
from stoker.gateway.words import Words
from stoker.records import Endpoint, QueueLimits, State
from stoker.records.boxes import BoxHealth, JoinAsked, JoinGiven, LetIn

KEY = "sk-stoker-box-of-a-benchmark"
LIMITS = Limits(2**20, 30.0, 30.0)


class One:
    """The directory of a box that serves the mock, and nothing else."""

    def __init__(self, engine_port: int) -> None:
        endpoint = Endpoint("mock", "mock", "r", "p", "127.0.0.1", engine_port)
        limits = QueueLimits(None, 4096, 60.0)
        self.entry = Entry(
            "mock", "mock", State.READY, time.time(), "", None, endpoint, 5, limits, revision="r", plan_id="p"
        )

    def entries(self) -> list[Entry]:
        """Returns the one."""
        return [self.entry]

    def find(self, model: str, headers: Headers | None = None) -> Entry | None:
        """Returns the one by its model."""
        return self.entry if model == "mock" else None

    def find_another(self, entry: Entry, tried: frozenset[str]) -> Entry | None:
        """Knows no other."""
        return None

    def find_service(self, name: str) -> Entry | None:
        """Returns the one by its name."""
        return self.find(name)

    def ask(self, service: str) -> None:
        """Starts nothing."""

    async def bring(self, service: str) -> None:
        """Starts nothing."""


async def _no_app(*_: object) -> None:
    """Is never asked."""


def _nobody(asked: JoinAsked, peer: str) -> JoinGiven:
    raise AssertionError(asked)


class Fleet:
    """The boxes by number."""

    def __init__(self, engine_port: int, identity: Path, tasks: asyncio.TaskGroup) -> None:
        self._tls = make_server_tls(identity)
        self._engine_port, self._tasks = engine_port, tasks
        self._doors: dict[int, tuple[LinkDoor, asyncio.Server]] = {}
        self.ports: dict[int, int] = {}

    async def start(self, number: int) -> None:
        """Lets one box listen, at the port that it had."""
        directory, ring = One(self._engine_port), LinkRing()
        ring.load([LetIn("door", sha256(KEY.encode()).hexdigest(), 0.0, False)])
        metrics = GatewayMetrics(list, "0")
        serving = Serving(GatewayConfig(), directory, metrics, "engine", lambda work, _: self._spawn(work))
        words = Words(directory.entries, serving.tokens, BoxHealth)
        door = LinkDoor(ring, serving, words, _no_app, _nobody, LIMITS, lambda work, _: self._spawn(work))
        server = await door.bind("127.0.0.1", self.ports.get(number, 0), self._tls)
        await server.start_serving()
        self.ports[number] = server.sockets[0].getsockname()[1]
        self._doors[number] = door, server

    def _spawn(self, work: object) -> None:
        assert asyncio.iscoroutine(work)
        self._tasks.create_task(work)

    def stop(self, number: int) -> None:
        """Cuts one off, as if its daemon were killed."""
        door, server = self._doors.pop(number)
        server.close()
        door.cut_all()

    async def obey(self) -> None:
        """Does what its standard input says, until that ends."""
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := (await reader.readline()).split():
            if line[0] == b"stop":
                self.stop(int(line[1]))
            else:
                await self.start(int(line[1]))
            print(json.dumps(time.monotonic()), flush=True)
        for number in list(self._doors):
            self.stop(number)


async def play(engine_port: int, count: int, folder: Path) -> None:
    """Plays the fleet."""
    identity = folder / "fleet.pem"
    pin = read_or_make_identity(identity)
    async with asyncio.TaskGroup() as tasks:
        fleet = Fleet(engine_port, identity, tasks)
        for number in range(count):
            await fleet.start(number)
        print(json.dumps([
            {"name": f"box-{number:02}", "host": "127.0.0.1", "port": port, "pin": pin, "key": KEY, "may_act": False}
            for number, port in fleet.ports.items()
        ]), flush=True)  # fmt: skip
        await fleet.obey()


if __name__ == "__main__":
    uvloop.run(play(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])))
