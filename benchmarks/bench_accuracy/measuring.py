"""Measures one scene with all tools, one after the other, each in a process of its own."""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.bench_accuracy.lanes import Lane, bound_to
from benchmarks.bench_accuracy.rows import Row
from benchmarks.bench_accuracy.scenes import Scene, truth_of
from benchmarks.bench_accuracy.serving import book_server, call, truth_server
from benchmarks.bench_accuracy.tools import TOOLS, Job
from benchmarks.bench_accuracy.truth_server import MODEL

LIMIT_S = 180.0
PROMPT_TOKENS = 512


class Cost(NamedTuple):
    """What a tool's run took, all that it started and waited for with it."""

    cpu_s: float
    wall_s: float


def measure_scene(scene: Scene, tools: Mapping[str, str], tokenizer: str, lane: Lane) -> list[Row]:
    """Returns a row a tool; `tools` has the words that call each, in the order in which they are to run."""
    with tempfile.TemporaryDirectory() as folder, bound_to(lane.server), truth_server() as url, book_server() as book_url:
        rows = []
        for name, words in tools.items():
            out = Path(folder) / name / re.sub(r"\W+", "-", scene.name)  # a comma ends the path for guidellm
            out.mkdir(parents=True)
            job = Job(url, MODEL, tokenizer, book_url, PROMPT_TOKENS, scene.tokens, scene.concurrency, scene.requests, out)
            rows.append(_measure(scene, name, words, job, lane))
        return rows


def _measure(scene: Scene, name: str, words: str, job: Job, lane: Lane) -> Row:
    call(f"{job.url}/truth/schedule", scene.schedule)
    with bound_to(lane.tool):
        cost = run_tool([*shlex.split(words), *TOOLS[name].words(job)], job.out / "log.txt")
    truth = truth_of(call(f"{job.url}/truth/requests"), scene)
    row = Row(scene, name, truth, _result(name, job), cost.cpu_s, cost.wall_s, os.getloadavg()[0], _machine())
    print(f"{scene.name:28} {name:12} {row.brief()}", file=sys.stderr, flush=True)
    return row


def run_tool(argv: Sequence[str], log: Path) -> Cost:
    """Runs a tool to its end, or kills it after `LIMIT_S`; what it says goes to the log."""
    begun_s = time.monotonic()
    with log.open("w") as said:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=_environment())
        giving_up = threading.Timer(LIMIT_S, process.kill)
        giving_up.start()
        _, status, used = os.wait4(process.pid, 0)  # this one's alone: other lanes have children too
        giving_up.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
    return Cost(used.ru_utime + used.ru_stime, time.monotonic() - begun_s)


def _environment() -> dict[str, str]:
    """Returns ours, in which Python may keep what it compiled: who installs a tool with pip has that from the start."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _result(name: str, job: Job) -> dict[str, Any]:
    try:
        return TOOLS[name].result(job)
    except (OSError, ValueError, KeyError, IndexError, TypeError) as problem:
        last: Sequence[str] = (job.out / "log.txt").read_text(errors="replace").splitlines()[-3:]
        print(f"{name} left nothing to read: {problem!r}; it said last: {' | '.join(last)}", file=sys.stderr)
        return {}


def _machine() -> str:
    return (
        f"{time.strftime('%Y-%m-%d')}, {platform.machine()} with {os.cpu_count()} processors, Linux {platform.release()},"
        f" Python {platform.python_version()}"
    )
