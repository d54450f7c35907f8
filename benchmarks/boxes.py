"""Measures several boxes behind one door: what the way over another box costs, what a death costs, and a fleet of 64.

    python -m benchmarks.boxes                     all, about five minutes
    python -m benchmarks.boxes --only cost --page docs/measured/boxes.md

All boxes are on this machine, over TLS on loopback, with the mock engine: what a wire adds is not in it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgspec
import psutil

from benchmarks.gateway.document import write_part
from benchmarks.gateway.load import Load, Measured, Target
from benchmarks.gateway.machine import describe_machine
from benchmarks.gateway.processes import ROOT, wait_for
from benchmarks.gateway.stoker_peer import StokerHome, render_mock_service
from benchmarks.gateway.table import markdown
from stoker.facts.machine.ports import pick_free_port

CHAT = "/v1/chat/completions"
LIMIT_S = 60.0
ROUNDS = 5
FLEET, STREAMS, REPLIES = 64, 2000, 6


def chat(tokens: int, itl_ms: float) -> dict[str, Any]:
    """Returns a streamed chat that the mock answers at that pace."""
    words = f"mock ttft=5 itl={itl_ms:g} tokens={tokens}"
    return {"model": "mock", "stream": True, "messages": [{"role": "user", "content": words}]}


MOCK = render_mock_service("mock", 1).replace("port = 1\n", "")  # at a free port: plans have to be alike


class Box:
    """A daemon on loopback that other doors may join, and the service `mock` where there is a table for one."""

    def __init__(self, name: str, table: str = "") -> None:
        self.name, port = name, pick_free_port("127.0.0.1")
        self.home = StokerHome(f'[boxes]\nhost = "127.0.0.1"\nport = {port}\nname = "{name}"\n{table}')
        self.url = f"https://127.0.0.1:{port}"
        if table:
            self.home.run("up", "mock")

    @property
    def pid(self) -> int:
        """The daemon's pid now, which is another one after a kill."""
        return int(json.loads(self.home.run("status", "--json"))["daemon"]["pid"])

    def join(self, other: Box) -> None:
        """Joins another box."""
        code = json.loads(other.home.run("boxes", "code", "--json"))["code"]
        words = [sys.executable, "-P", "-m", "stoker", "boxes", "add", other.name, other.url]
        subprocess.run(words, input=code, text=True, check=True, capture_output=True, env=self.home._environment)
        wait_for(other.name, lambda: other.name in self.ready(), LIMIT_S)

    def client(self) -> httpx.Client:
        """A client of this box's door."""
        return httpx.Client(base_url=f"http://127.0.0.1:{self.home.port}", headers=self.home.headers, timeout=LIMIT_S)

    def ready(self) -> set[str]:
        """Returns the boxes at which the mock is READY, as this door has it."""
        with self.client() as client:
            listed = client.get("/v1/models").json()["data"]
        return {one["box"] for model in listed for one in model["replicas"] if one["state"] == "READY"}


def drive(port: int, headers: dict[str, str], pids: list[int], load: Load, max_s: float = 120.0) -> Measured:
    """Runs the load in a process of its own."""
    words = [sys.executable, "-m", "benchmarks.gateway.load"]
    words += [msgspec.json.encode(one).decode() for one in (Target(port, pids, headers), load)]
    done = subprocess.run([*words, "--max-s", str(max_s)], capture_output=True, check=True, cwd=ROOT)
    return msgspec.json.decode(done.stdout, type=Measured)


class Cost(NamedTuple):
    """The way over another box beside the way over one box, in one round."""

    added_us: float | None
    cpu_one_ms: float
    cpu_door_ms: float


def measure_cost(rounds: int, load: Load) -> list[Cost]:
    """Asks one box at its own door, and the same box through another one's, turn by turn."""
    with ExitStack() as ends:
        door, box = Box("door"), Box("far", MOCK)
        ends.callback(door.home.stop)
        ends.callback(box.home.stop)
        door.join(box)
        ways = [(one.home.port, one.home.headers, [one.pid]) for one in (box, door)]
        found = []
        for _ in range(rounds):
            own, far = (drive(*way, load) for way in ways)
            for one in (own, far):
                if one.errors or one.unfinished or one.transit_us is None:
                    raise RuntimeError(f"{one.errors}, {one.unfinished} unfinished")
            added = _p50(far) - _p50(own)
            found.append(Cost(added, own.cpu_s / own.chunks * 1e6, far.cpu_s / far.chunks * 1e6))
    return found


def _p50(one: Measured) -> float:
    return (one.transit_us or {})["p50"]


class Failover(NamedTuple):
    """One death: streams under way on the box that died and on the other, how many ended badly, and what came next."""

    dying: int
    others: int
    lost: int
    lost_of_others: int
    next_ms: float
    tries: int
    seen_ms: float


def measure_failover(rounds: int, streams: int) -> list[Failover]:
    """Kills a box's daemon with -9 under streams, again and again."""
    with ExitStack() as ends:
        door, b, c = Box("door"), Box("b", MOCK), Box("c", MOCK)
        for one in (door, b, c):
            ends.callback(one.home.stop)
        door.join(b)
        door.join(c)
        found = []
        for _ in range(rounds):
            found.append(asyncio.run(_kill_under_streams(door, b, streams)))
            b.home.run("up", "mock")
            wait_for("the box", lambda: door.ready() == {"b", "c"}, LIMIT_S)
        for one in (b, c):
            one.home.run("down")
    return found


async def _kill_under_streams(door: Box, dying: Box, streams: int) -> Failover:
    pid, ended = dying.pid, list[tuple[str, bool]]()
    begun = asyncio.Semaphore(0)
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{door.home.port}", headers=door.home.headers, timeout=60
    ) as client:

        async def ask() -> None:
            box, last = "", ""
            try:
                async with client.stream("POST", CHAT, json=chat(150, 20.0)) as stream:
                    box = stream.headers["x-stoker-box"]
                    begun.release()
                    async for line in stream.aiter_lines():
                        last = line or last
            except httpx.RemoteProtocolError:
                pass
            ended.append((box, last == "data: [DONE]"))

        async with asyncio.TaskGroup() as tasks:
            for _ in range(streams):
                tasks.create_task(ask())
            for _ in range(streams):
                await begun.acquire()
            psutil.Process(pid).kill()
            killed = time.monotonic()
            # A request that was on its way to the box as it died is lost with it: it is asked again, as clients do.
            tries = 1
            while (await client.post(CHAT, json={**chat(1, 1.0), "stream": False})).status_code != 200:
                tries += 1
            next_ms = (time.monotonic() - killed) * 1000
            seen_ms = await _until(lambda: client.get("/v1/models"), "AWAY", killed)
    on_dying = [good for box, good in ended if box == dying.name]
    on_other = [good for box, good in ended if box != dying.name]
    return Failover(len(on_dying), len(on_other), on_dying.count(False), on_other.count(False), next_ms, tries, seen_ms)


async def _until(ask: Callable[[], Any], word: str, since: float) -> float:
    while word not in (await ask()).text:
        if time.monotonic() - since > LIMIT_S:
            raise RuntimeError(f"no {word}")
    return (time.monotonic() - since) * 1000


class FleetRun(NamedTuple):
    """A fleet under streams: the daemon's memory over time, and how soon a box that went or came was seen."""

    good: int
    errors: dict[str, int]
    chunks: int
    stretch: float
    idle_cpu: float
    rss: tuple[int, ...]
    gone_ms: tuple[float, ...]
    back_ms: tuple[float, ...]


def measure_fleet(boxes: int, streams: int, engine_port: int) -> FleetRun:
    """Has one door follow many boxes, asks them by many streams, and lets boxes go and come meanwhile."""
    door = Box("door")
    with ExitStack() as ends:
        ends.callback(door.home.stop)
        engine = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.gateway.mock_engine", "--port", str(engine_port)], cwd=ROOT
        )
        ends.callback(engine.terminate)
        words = [sys.executable, "-m", "benchmarks.boxes_fleet", str(engine_port), str(boxes), str(door.home.folder)]
        fleet = subprocess.Popen(words, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        ends.callback(fleet.terminate)
        assert fleet.stdin is not None and fleet.stdout is not None
        links = json.loads(fleet.stdout.readline())
        psutil.Process(door.pid).kill()
        (door.home.folder / "state/links.json").write_text(json.dumps({"boxes": links, "doors": []}))
        door.home.process.wait()
        door.home.run("boxes", "list")
        door.home.port = int((door.home.folder / "state/daemon.address").read_text().rpartition(":")[2])
        wait_for("the fleet", lambda: len(door.ready()) == boxes, LIMIT_S)
        daemon = psutil.Process(door.pid)
        daemon.cpu_percent()
        idle_cpu = daemon.cpu_percent(10.0)
        load = Load(streams=streams, requests=REPLIES, tokens=30, ttft_ms=500.0, itl_ms=500.0, ramp_s=15.0)
        target = Target(door.home.port, [daemon.pid], door.home.headers)
        raw = [msgspec.json.encode(one).decode() for one in (target, load)]
        driver = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.gateway.load", *raw, "--max-s", "240"], cwd=ROOT, stdout=subprocess.PIPE
        )
        rss, gone, back = list[int](), list[float](), list[float]()
        while driver.poll() is None:
            rss.append(daemon.memory_info().rss)
            if len(rss) % 5 == 0 and len(gone) < ROUNDS and len(rss) > 20:
                _order(fleet, "stop 0")
                gone.append(_wait_ms(lambda: "box-00" not in door.ready()))
                _order(fleet, "start 0")
                back.append(_wait_ms(lambda: "box-00" in door.ready()))
            try:
                driver.wait(1.0)
            except subprocess.TimeoutExpired:
                continue
        assert driver.stdout is not None
        seen = msgspec.json.decode(driver.stdout.read(), type=Measured)
        door.home.run("down")
    return FleetRun(seen.good, seen.errors, seen.chunks, seen.stretch, idle_cpu, tuple(rss), tuple(gone), tuple(back))


def _order(fleet: subprocess.Popen[str], word: str) -> None:
    assert fleet.stdin is not None and fleet.stdout is not None
    fleet.stdin.write(f"{word}\n")
    fleet.stdin.flush()
    fleet.stdout.readline()


def _wait_ms(is_so: Callable[[], bool]) -> float:
    begun = time.monotonic()
    wait_for("the change", is_so, LIMIT_S)
    return (time.monotonic() - begun) * 1000


def say_costs() -> str:
    """Returns the costs at both paces as text."""
    paces = ("in steps, as an engine writes that batches", True), ("each at its own time", False)
    texts = []
    for pace, steps in paces:
        load = Load(streams=16, requests=2, tokens=200, itl_ms=20.0, ramp_s=1.0, steps=steps)
        texts.append(say_cost(measure_cost(ROUNDS, load), load, pace))
    return "\n\n".join(texts)


def say_cost(found: list[Cost], load: Load, pace: str) -> str:
    """Returns the costs as text."""
    rows = [(f"{one.added_us:.0f} us", f"{one.cpu_one_ms:.0f} ms", f"{one.cpu_door_ms:.0f} ms") for one in found]
    middle = statistics.median(one.added_us for one in found if one.added_us is not None)
    return "\n".join([
        f"{load.streams} streams of {load.tokens} chunks, {load.itl_ms:g} ms apart, {pace}; {load.requests} times each.",
        f"A remote box adds {middle:.0f} us to a chunk's way (p50, the median of {len(found)} rounds).",
        say_ratios(found), "",
        markdown(["added, p50", "one box, CPU for 1000 chunks", "door, CPU for 1000 chunks"], [[*row] for row in rows]),
    ])  # fmt: skip


def say_ratios(found: list[Cost]) -> str:
    """Returns what a door takes for the chunks of another box, by what one box alone takes for its own."""
    ratios = [one.cpu_door_ms / one.cpu_one_ms for one in found]
    ratio, spread = statistics.median(ratios), f"{min(ratios):.2f} to {max(ratios):.2f}"
    return f"The door's processor time for 1000 chunks is {ratio:.2f} of what one box takes ({spread})."


def say_failover(found: list[Failover]) -> str:
    """Returns the deaths as text."""
    rows = [
        (
            f"{one.dying}",
            f"{one.lost}",
            f"{one.others}",
            f"{one.lost_of_others}",
            f"{one.next_ms:.0f} ms, {one.tries}",
            f"{one.seen_ms:.0f} ms",
        )
        for one in found
    ]
    heads = [
        "streams there",
        "ended with an error",
        "streams elsewhere",
        "of those lost",
        "next answer after, tries",
        "AWAY after",
    ]
    return f"A box's daemon is killed with -9 under streams.\n\n{markdown(heads, [[*row] for row in rows])}"


def say_fleet(run: FleetRun, boxes: int, streams: int) -> str:
    """Returns the fleet as text."""
    tenths = [run.rss[len(run.rss) * tenth // 10] for tenth in range(1, 10)]
    rows = [
        ("replies", f"{run.good} whole, {sum(run.errors.values())} not {run.errors or ''}"),
        ("chunks, and how much longer than ideal", f"{run.chunks}, {run.stretch:.2f} times"),
        ("the door's processor while nobody asks", f"{run.idle_cpu:.1f} % of a core"),
        ("the door's memory at each tenth of the time", ", ".join(f"{one / 2**20:.0f}" for one in tenths) + " MiB"),
        ("a box that went is seen after", ", ".join(f"{one:.0f}" for one in run.gone_ms) + " ms"),
        ("a box that came back is seen after", ", ".join(f"{one:.0f}" for one in run.back_ms) + " ms"),
    ]
    table = markdown(["what", "seen"], [[*row] for row in rows])
    return f"{boxes} boxes, {streams} streams at once, {REPLIES} replies each.\n\n{table}"


def main() -> None:
    """Measures, prints, and writes the page where one is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["cost", "failover", "fleet"])
    parser.add_argument("--page", type=Path)
    parser.add_argument("--streams", type=int, default=STREAMS)
    options = parser.parse_args()
    parts = {
        "cost": say_costs,
        "failover": lambda: say_failover(measure_failover(ROUNDS, 16)),
        "fleet": lambda: say_fleet(
            measure_fleet(FLEET, options.streams, pick_free_port("127.0.0.1")), FLEET, options.streams
        ),
    }
    for name in [options.only] if options.only else parts:
        text = f"{describe_machine()}\n\n{parts[name]()}"
        print(text)
        if options.page:
            write_part(options.page, name, text)


if __name__ == "__main__":
    main()
