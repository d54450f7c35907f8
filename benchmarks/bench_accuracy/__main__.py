"""Compares benchmark tools with a server that knows the truth, and writes the tables into a document.

    python -m benchmarks.bench_accuracy --tokenizer TOKENIZER_DIR --write docs/measured/bench.md \\
        --tool llama-benchy=/opt/llama-benchy/bin/llama-benchy --tool aiperf=/opt/aiperf/bin/aiperf

Ours is always measured; each peer is given by the words that call it. A peer needs a tokenizer folder with one byte a token.
Nothing else should run meanwhile: half a core taken by others moves every tool's times.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.bench_accuracy.pages import Row, pages
from benchmarks.bench_accuracy.scenes import SCENES, Scene, truth_of
from benchmarks.bench_accuracy.serving import book_server, call, truth_server
from benchmarks.bench_accuracy.tools import TOOLS, Job
from benchmarks.bench_accuracy.truth_server import MODEL
from benchmarks.gateway.document import write_part

LIMIT_S = 180.0
PROMPT_TOKENS = 512


def main() -> None:
    """Measures all scenes with all tools."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tool", action="append", default=[], metavar="NAME=WORDS", help=", ".join(TOOLS))
    parser.add_argument("--tokenizer", default="", help="a folder whose tokenizer makes one token of a byte")
    parser.add_argument("--only", default="", help="scenes whose names hold this")
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()
    ours = shlex.join([sys.executable, str(Path(__file__).with_name("adapter.py"))])
    tools = {"stoker": ours} | dict(one.split("=", 1) for one in asked.tool)
    scenes = [scene for scene in SCENES if asked.only in scene.name]
    with tempfile.TemporaryDirectory() as folder, truth_server() as url, book_server() as book_url:
        rows = [
            _measure(name, words, scene, url, book_url, asked.tokenizer, Path(folder))
            for scene in scenes
            for name, words in tools.items()
        ]
    text = pages(rows, list(tools))
    print(text)
    if asked.write:
        write_part(asked.write, "bench accuracy", text)


def _measure(name: str, words: str, scene: Scene, url: str, book_url: str, tokenizer: str, folder: Path) -> Row:
    call(f"{url}/truth/schedule", scene.schedule)
    out = folder / name / re.sub(r"\W+", "-", scene.name)  # a comma ends the path for guidellm
    out.mkdir(parents=True)
    job = Job(url, MODEL, tokenizer, book_url, PROMPT_TOKENS, scene.tokens, scene.concurrency, scene.requests, out)
    before, begun_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with (out / "log.txt").open("w") as log, contextlib.suppress(subprocess.TimeoutExpired):
        argv = [*shlex.split(words), *TOOLS[name].words(job)]
        subprocess.run(argv, stdout=log, stderr=log, timeout=LIMIT_S, check=False, env=_environment())
    wall_s, after = time.monotonic() - begun_s, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    truth = truth_of(call(f"{url}/truth/requests"), scene)
    row = Row(scene, name, truth, _result(name, job), cpu_s, wall_s, os.getloadavg()[0])
    print(f"{scene.name:36} {name:14} {row.brief()}", file=sys.stderr, flush=True)
    return row


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


if __name__ == "__main__":
    main()
