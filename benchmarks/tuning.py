"""Tunes, and sweeps everything beside it: how near the choice is to the sweep's best, and how many starts were spared.

    python -m benchmarks.tuning [--seeds 5] [--measure 15] [--rounds 24] [--lanes 1] [--vllm PYTHON]
                                [--rows build/tuning.jsonl] [--resume] [--write docs/measured/tuning.md]

The demo model with its draft model in llama.cpp (embedded), on code and on prose; with --vllm, in vLLM instead, where only
numbers of draft tokens are tried, since a start takes most of a minute. For each seed a tuning without memory of former
ones, and then all ways that there are, up at once and asked the same prompts in turn (`tuning_fleet.py`). Nothing else
should run meanwhile.

--lanes runs several at once, each on as many cores of its own as there are for each. Each row is written to --rows as soon
as it is known; --resume leaves out those which are there, and --resume --seeds 0 only makes the page of them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from benchmarks.tuning_page import Row, render, with_notes

ROOT = Path(__file__).parents[1]
LINE_LIMIT_BYTES = 2**20


class Case(NamedTuple):
    """What one row is asked of."""

    engine: str
    content: str
    seed: int

    def __str__(self) -> str:
        return f"{self.engine} {self.content} {self.seed}"


def cases_of(engine: str, seeds: int, known: Iterable[Row]) -> list[Case]:
    """Returns what is still to be asked; code and prose by turns, so that a run that is cut off has both."""
    cases = [Case(engine, content, seed) for seed in range(1, seeds + 1) for content in ("code", "prose")]
    done = {row.key for row in known}
    return [case for case in cases if case not in done]


def share_cores(cores: Iterable[int], lanes: int) -> list[list[int]]:
    """Returns the cores of each lane, neighbours together, since two threads of one core have neighbouring numbers."""
    every = sorted(cores)
    each = max(1, len(every) // lanes)
    shares = [every[place * each : (place + 1) * each] for place in range(lanes)]
    if not all(shares):
        raise SystemExit(f"{lanes} lanes need as many cores, and there are {len(every)}")
    return shares


def read_rows(file: Path) -> list[Row]:
    """Returns the rows of a file; none where there is no file yet, and without a last line that was cut off."""
    lines = file.read_bytes().splitlines(keepends=True) if file.exists() else []
    return [msgspec.json.decode(line, type=Row) for line in lines if line.endswith(b"\n")]


async def run_lane(cores: list[int], cases: list[Case], options: argparse.Namespace) -> None:
    """Takes one case after another, in a process of its own, and keeps each row as it comes; a failure says why itself."""
    engine, words = cases[0].engine, [f"{case.content}:{case.seed}" for case in cases]
    words += ["--measure", str(options.measure), "--rounds", str(options.rounds), "--cores", ",".join(map(str, cores))]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.tuning_lane", engine, *words, *(["--vllm", options.vllm] if options.vllm else []),
        cwd=ROOT, stdout=asyncio.subprocess.PIPE, limit=LINE_LIMIT_BYTES,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        async for line in process.stdout:
            with options.rows.open("ab") as file:
                file.write(line)
            row = msgspec.json.decode(line, type=Row)
            print(f"{row.engine} {row.content} {row.seed}: {row.chosen}, best {row.best}, behind {row.behind}", flush=True)
        await process.wait()
    finally:
        if process.returncode is None:
            process.terminate()
            await process.communicate()


async def run_lanes(cases: list[Case], options: argparse.Namespace) -> None:
    """Runs all cases; where it is told to end, the rows that run end too and leave nothing behind."""
    count = min(options.lanes, len(cases))
    shares = share_cores(os.sched_getaffinity(0), count) if cases else []
    lanes = asyncio.gather(*(run_lane(share, cases[place::count], options) for place, share in enumerate(shares)))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lanes.cancel)
    await lanes


def main() -> None:
    """Compares, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--measure", type=float, default=15.0)
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--lanes", type=int, default=1)
    parser.add_argument("--vllm", metavar="PYTHON")
    parser.add_argument("--rows", type=Path, default=ROOT / "build" / "tuning.jsonl")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    options.rows.parent.mkdir(parents=True, exist_ok=True)
    if not options.resume and options.seeds:
        options.rows.unlink(missing_ok=True)
    engine = "vLLM" if options.vllm else "llama.cpp"
    try:
        asyncio.run(run_lanes(cases_of(engine, options.seeds, read_rows(options.rows)), options))
    except asyncio.CancelledError:
        print("told to end", file=sys.stderr)
    rows = read_rows(options.rows)
    missing = [str(case) for case in cases_of(engine, options.seeds, rows)]
    page = render(rows, missing) if rows else "no row came to its end\n"
    print(page)
    if options.write and rows:
        before = options.write.read_text() if options.write.exists() else ""
        options.write.write_text(with_notes(page, before))
    raise SystemExit(1 if missing else 0)


if __name__ == "__main__":
    main()
