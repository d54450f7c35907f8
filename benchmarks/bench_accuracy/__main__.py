"""Compares benchmark tools with a server that knows the truth, and writes the tables into a document.

    python -m benchmarks.bench_accuracy --tokenizer TOKENIZER_DIR --repeats 3 --write docs/measured/bench.md \\
        --tool llama-benchy=/opt/llama-benchy/bin/llama-benchy --tool aiperf=/opt/aiperf/bin/aiperf

Ours is always measured; each peer is given by the words that call it. A peer needs a tokenizer folder with one byte a token.
Nothing else should run meanwhile: half a core taken by others moves every tool's times. With `--lanes` several scenes are
measured at once, each with its server and its tool on cores of their own; `--rows` keeps what was measured, so that a table
may be made of several runs, and of one that was stopped.
"""

from __future__ import annotations

import argparse
import queue
import shlex
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from benchmarks.bench_accuracy.lanes import Lane, plan_lanes
from benchmarks.bench_accuracy.measuring import measure_scene
from benchmarks.bench_accuracy.pages import pages
from benchmarks.bench_accuracy.rows import Row, keep_rows, read_rows
from benchmarks.bench_accuracy.scenes import SCENES, Scene
from benchmarks.bench_accuracy.tools import TOOLS
from benchmarks.gateway.cores import read_threads
from benchmarks.gateway.document import write_part


def main() -> None:
    """Measures all scenes with all tools."""
    asked = _asked()
    ours = shlex.join([sys.executable, str(Path(__file__).with_name("adapter.py"))])
    tools = {"stoker": ours} | dict(one.split("=", 1) for one in asked.tool)
    rows = read_rows(asked.rows) if asked.rows else []
    for more in _measured(asked, tools):
        rows += more
        if asked.rows:
            keep_rows(asked.rows, more)
    rows.sort(key=lambda row: [scene.name for scene in SCENES].index(row.scene.name))
    text = pages(rows, list(dict.fromkeys([*tools, *(row.tool for row in rows)])))
    print(text)
    if asked.write:
        write_part(asked.write, "bench accuracy", text)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tool", action="append", default=[], metavar="NAME=WORDS", help=", ".join(TOOLS))
    parser.add_argument("--tokenizer", default="", help="a folder whose tokenizer makes one token of a byte")
    parser.add_argument("--only", default="", help="scenes whose names hold this")
    parser.add_argument("--repeats", type=int, default=1, help="how often all is measured; 0: only tell what --rows holds")
    parser.add_argument("--lanes", type=int, default=1, help="how many scenes at once; two cores or more each")
    parser.add_argument("--for", type=float, default=float("inf"), dest="for_s", help="seconds after which no scene begins")
    parser.add_argument("--rows", type=Path, help="a file to which what was measured is added, and told with it")
    parser.add_argument("--write", type=Path)
    return parser.parse_args()


def _measured(asked: argparse.Namespace, tools: dict[str, str]) -> Iterator[list[Row]]:
    """Yields each scene's rows when it was measured; the tools take turns at being first."""
    lanes: queue.SimpleQueue[Lane] = queue.SimpleQueue()
    for lane in plan_lanes(asked.lanes, read_threads()):
        lanes.put(lane)
    until_s = time.monotonic() + asked.for_s

    def measure(scene: Scene, order: list[str]) -> list[Row]:
        if time.monotonic() >= until_s:
            return []
        lane = lanes.get()
        try:
            return measure_scene(scene, {name: tools[name] for name in order}, asked.tokenizer, lane)
        finally:
            lanes.put(lane)

    names = list(tools)
    orders = [names[turn % len(names) :] + names[: turn % len(names)] for turn in range(asked.repeats)]
    jobs = [(scene, order) for order in orders for scene in SCENES if asked.only in scene.name]
    with ThreadPoolExecutor(asked.lanes) as pool:
        for done in as_completed([pool.submit(measure, *job) for job in jobs]):
            yield done.result()


if __name__ == "__main__":
    main()
