"""Soaks the gateway: streams, departures and switches for an hour; nothing may be wrong, lost or leaked.

    python -m benchmarks.soak --minutes 60 --streams 256

Two services of one group, each the mock engine under a name of its own, are put in each other's place again and again, while
clients ask for the one that is up, for the other one, and for none that there is. Every chunk is stamped, and every whole
stream's bytes are compared with the engine's own sum of them. Prints a summary; ends with 1 on a breach:

- an answer of another model or engine than the one asked for, in a single word of it;
- a byte lost, changed, doubled or out of place; a stream that ends cleanly without having been whole;
- a request that breaks off while nothing is being switched, or does not end;
- the daemon's memory at the end 5 % over that after the warm-up; descriptors or requests that are left over.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import psutil
import uvloop

from benchmarks.gateway.document import write_part
from benchmarks.gateway.machine import describe_machine
from benchmarks.gateway.processes import ask_json, end_cleanly_on_sigterm, wait_for
from benchmarks.gateway.soak_client import Scene, SoakClient
from benchmarks.gateway.soak_judge import Tally
from benchmarks.gateway.stoker_peer import StokerHome, render_mock_service
from benchmarks.gateway.table import markdown
from stoker.facts.machine.ports import pick_free_port

MODELS = ["red", "blue"]
GROWTH_LIMIT = 1.05
SPARE_DESCRIPTORS = 8
WARM_UP_SHARE, WINDOW_SHARE = 0.2, 0.2
SAMPLE_S = 2.0
IDLE_LIMIT_S = 120.0
SHOW_S = 60.0


class Sample(NamedTuple):
    """The daemon at one moment."""

    at_s: float
    rss_bytes: int
    descriptors: int


class Soak:
    """One soak: its daemon, its clients, and what was seen."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._length_s = options.minutes * 60
        self.ports = {model: pick_free_port("127.0.0.1") for model in MODELS}
        self._home = StokerHome("".join(render_mock_service(m, p, 'group = "one"') for m, p in self.ports.items()))
        self._daemon = psutil.Process(self._home.process.pid)
        self._scene = Scene(self._home.port, self._home.headers, MODELS)
        self.tally, self.samples = Tally(), list[Sample]()
        self.switches_s: list[float] = []
        self.idle_before: Sample | None = None
        self.idle_after: Sample | None = None

    def run(self) -> None:
        """Soaks, then looks at what is left."""
        try:
            self._home.run("up", MODELS[1])  # so that the daemon knows both
            self._home.run("switch", MODELS[0])
            self.idle_before = self._look()
            uvloop.run(self._live())
            self._await_idle()
        finally:
            self._home.stop()

    async def _live(self) -> None:
        end_s = time.monotonic() + self._length_s
        clients = [SoakClient(self._scene, self.tally, self._options.itl_ms, seed) for seed in range(self._options.streams)]
        async with asyncio.TaskGroup() as tasks:
            working = [tasks.create_task(client.run(end_s)) for client in clients]
            watching = [tasks.create_task(self._watch()), tasks.create_task(self._switch_until(end_s))]
            await asyncio.wait(working)
            watching[0].cancel()

    async def _watch(self) -> None:
        shown_s = time.monotonic()
        while True:
            self.samples.append(self._look())
            if time.monotonic() - shown_s > SHOW_S:
                shown_s = time.monotonic()
                print(f"{self.samples[-1].rss_bytes / 2**20:.1f} MiB, {self._brief()}", file=sys.stderr, flush=True)
            await asyncio.sleep(SAMPLE_S)

    def _brief(self) -> str:
        return f"{self.tally.chunks} chunks, {len(self.switches_s)} switches, {self.tally.breach_count} breaches"

    def _look(self) -> Sample:
        return Sample(time.monotonic(), self._daemon.memory_info().rss, self._daemon.num_fds())

    async def _switch_until(self, end_s: float) -> None:
        while time.monotonic() + self._options.switch_s < end_s:
            await asyncio.sleep(self._options.switch_s)
            await self._switch(self._scene.other)

    async def _switch(self, comes: str) -> None:
        begun_s, self._scene.switching = time.monotonic(), True
        try:
            await asyncio.to_thread(self._home.run, "switch", comes)
            self._scene.up = comes
        except (RuntimeError, subprocess.SubprocessError) as problem:
            self.tally.breach(f"a switch to {comes} failed: {problem}")  # what was up comes back
        finally:
            self._scene.switching, self._scene.switched_s = False, time.monotonic()
        self.switches_s.append(time.monotonic() - begun_s)

    def _await_idle(self) -> None:
        """Waits until nothing is left of the requests, nor of the connections that the gateway keeps for next ones."""
        port = self.ports[self._scene.up]
        try:
            wait_for("the engine to be idle", lambda: ask_json(port, "/mock/stats")[1]["active"] == 0, IDLE_LIMIT_S)
            wait_for("descriptors to be given back", self._gave_back, IDLE_LIMIT_S)
        except TimeoutError as problem:
            self.tally.breach(f"when all clients had left: {problem}")
        self.idle_after = self._look()

    def _gave_back(self) -> bool:
        before = self.idle_before.descriptors if self.idle_before else 0
        return self._look().descriptors <= before + SPARE_DESCRIPTORS

    def judge_memory(self) -> tuple[float, float]:
        """Returns the median of MiB after the warm-up and at the end; a growth over the limit is a breach."""
        first = self._median_mib(WARM_UP_SHARE, WARM_UP_SHARE + WINDOW_SHARE)
        last = self._median_mib(1 - WINDOW_SHARE, 1.0)
        if last > first * GROWTH_LIMIT:
            self.tally.breach(f"the daemon's memory went from {first:.1f} to {last:.1f} MiB")
        return first, last

    def _median_mib(self, from_share: float, to_share: float) -> float:
        begin_s, end_s = (self.samples[0].at_s + share * self._length_s for share in (from_share, to_share))
        found = [sample.rss_bytes / 2**20 for sample in self.samples if begin_s <= sample.at_s <= end_s]
        return statistics.median(found)

    def render(self) -> str:
        """Returns the summary as Markdown."""
        first, last = self.judge_memory()
        tally = self.tally
        rows = [
            ["length", f"{self._options.minutes:g} minutes, {self._options.streams} streams"],
            ["chunks", f"{tally.chunks}"], *([name, str(number)] for name, number in tally.seen.most_common()),
            ["switches", f"{len(self.switches_s)}, the longest {max(self.switches_s, default=0):.1f} s"],
            ["wrong answers", str(tally.wrong_answers)], ["streams with lost or changed bytes", str(tally.lost_bytes)],
            ["memory, after the warm-up and at the end", f"{first:.1f} and {last:.1f} MiB ({last / first - 1:+.1%})"],
            ["descriptors, idle before and after", f"{_descriptors(self.idle_before)} and {_descriptors(self.idle_after)}"],
            ["breaches", str(tally.breach_count)],
        ]  # fmt: skip
        return "\n".join([f"{describe_machine()}\n", markdown(["what", "seen"], rows), *(f"- {b}" for b in tally.breaches)])


def _descriptors(sample: Sample | None) -> str:
    return "unknown" if sample is None else str(sample.descriptors)


def main() -> int:
    """Soaks and tells."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--streams", type=int, default=256)
    parser.add_argument("--switch-s", type=float, default=60.0, help="seconds between two switches")
    parser.add_argument("--itl-ms", type=float, default=150.0, help="the engine's pace")
    parser.add_argument("--write", type=Path, help="write the summary into this document, too")
    parser.add_argument("--json", type=Path, help="write the daemon's memory over time here")
    options = parser.parse_args()
    end_cleanly_on_sigterm()
    soak = Soak(options)
    soak.run()
    text = soak.render()
    print(text)
    if options.write:
        write_part(options.write, "soak", text)
    if options.json:
        options.json.write_text(json.dumps([sample._asdict() for sample in soak.samples]))
    return 1 if soak.tally.breach_count else 0


if __name__ == "__main__":
    sys.exit(main())
