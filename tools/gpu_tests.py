"""Runs the tests of real engines on GPUs: what may share a card side by side, then what needs the card alone.

    STOKER_SGLANG_SITE=FOLDER STOKER_VLLM_SITE=FOLDER python -m tools.gpu_tests [--long] [--out build/gpu] [PYTEST'S WORDS]

An engine of the demo model takes a fraction of a card and waits most of its start for imports and compilers, so several
start at once. Each engine gets cards and cores of its own where there are several. --long runs what is measured for long
instead: the gateway at a GPU's speed, the loading of large files, and where there are two cards for an engine, one model
over two boxes. Each part's output goes to its own file, and what it notes to `results.jsonl`, which begins anew with each
run but one of what failed the last time (--last-failed).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from benchmarks.gpu import run as runs
from benchmarks.tuning import share_cores

ROOT = Path(__file__).resolve().parents[1]
SITES = {"sglang": "STOKER_SGLANG_SITE", "vllm": "STOKER_VLLM_SITE"}
AT_ONCE = 5  # starts beside each other; more would wait for each other's compilers on 16 cores
NOTHING_TO_RUN = 5  # pytest's word for it
# A plugin that a Python with torch often has; it warns where tests run side by side, and a warning is an error here.
WITHOUT = ("-p", "no:benchmark")
SHOWN_LINES = 40
AGAIN = {"--last-failed", "--lf"}


class Part(NamedTuple):
    """Some of the tests, and how they are run."""

    name: str
    words: tuple[str, ...]


# loadgroup: each test by itself goes to the next process that is free; none here is in a group.
SHORT = (
    Part("side by side", ("-n", str(AT_ONCE), "--dist", "loadgroup", "-m", "not alone and not long")),
    Part("alone on the card", ("-m", "alone and not long")),
)
LONG = (Part("measured for long", ("-m", "long")),)


def find_cards(environment: Mapping[str, str]) -> list[str]:
    """Returns the names by which CUDA knows the cards that may be used."""
    if visible := [one for one in environment.get("CUDA_VISIBLE_DEVICES", "").split(",") if one]:
        return visible
    try:
        listed = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as problem:
        raise SystemExit(f"there is no GPU here, as far as nvidia-smi tells: {problem}") from None
    return [str(place) for place, _ in enumerate(listed.splitlines())]


def environment_of(engine: str, own_cards: str, environment: Mapping[str, str], out: Path) -> dict[str, str]:
    """Returns the environment in which one engine alone is found, on its cards."""
    others = {name for other, name in SITES.items() if other != engine}
    kept = {name: value for name, value in environment.items() if name not in others}
    return kept | {"CUDA_VISIBLE_DEVICES": own_cards, "STOKER_GPU_OUT": str(out)}


def run_part(engine: str, part: Part, environment: dict[str, str], words: list[str]) -> bool:
    """Runs a part of one engine's tests, says how that ended, and returns whether it went well."""
    log = Path(environment["STOKER_GPU_OUT"], f"{engine}, {part.name}.log".replace(", ", "-").replace(" ", "-"))
    began_s = time.monotonic()
    argv = [sys.executable, "-m", "pytest", *WITHOUT, *part.words, "--durations=0", "--durations-min=5", *words]
    with log.open("wb") as file:
        code = subprocess.run(argv, cwd=ROOT, env=environment, stdout=file, stderr=subprocess.STDOUT).returncode
    lines = log.read_text(errors="replace").splitlines() or [""]
    print(f"{engine}, {part.name}: {time.monotonic() - began_s:.0f} s, {lines[-1].strip('= ')} ({log})", flush=True)
    is_well = code in (0, NOTHING_TO_RUN)
    if not is_well:
        print("\n".join(lines[-SHOWN_LINES:]), flush=True)
    return is_well


def run_engine(
    engine: str, parts: tuple[Part, ...], environment: dict[str, str], words: list[str], cores: Collection[int] = ()
) -> bool:
    """Runs all parts of one engine's tests, also those behind one that failed; on the cores that are named."""
    if cores:
        os.sched_setaffinity(0, cores)  # of this thread, and of all that it starts
    ended = [run_part(engine, part, environment, words) for part in parts]
    return all(ended)


def with_tests(words: list[str]) -> list[str]:
    """Returns pytest's words, and with them all tests of GPUs where they name no path of tests, as `tests/with_gpu/…`."""
    names_some = any("/" in word and not word.startswith("-") for word in words)
    return words if names_some else [*words, "tests/with_gpu"]


def begin(folder: Path, words: Collection[str]) -> Path:
    """Returns the folder of a run's results, with what the run is of, and without what an earlier one noted."""
    out = folder.resolve()
    out.mkdir(parents=True, exist_ok=True)
    if not AGAIN & set(words):
        (out / "results.jsonl").unlink(missing_ok=True)
    sites = {engine: site for engine, name in SITES.items() if (site := os.environ.get(name))}
    runs.keep(runs.look(os.environ.get("STOKER_GPU_PYTHON", sys.executable), sites), out)
    return out


def main() -> None:
    """Runs all, each engine on cards of its own where there are as many."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "gpu")
    options, words = parser.parse_known_args()
    engines = [engine for engine, site in SITES.items() if os.environ.get(site)]
    if not engines:
        raise SystemExit(f"no engine is named: {' or '.join(SITES.values())} is the folder of an unpacked one")
    cards, out = find_cards(os.environ), begin(options.out, words)
    parts = LONG if options.long else SHORT
    tests = with_tests(words)
    lanes = min(len(cards), len(engines))
    shares = share_cores(os.sched_getaffinity(0), lanes)
    with ThreadPoolExecutor(lanes) as pool:
        jobs = [
            pool.submit(
                run_engine, engine, parts, environment_of(engine, ",".join(cards[place % lanes :: lanes]), os.environ, out),
                tests, shares[place % lanes],
            )
            for place, engine in enumerate(engines)
        ]  # fmt: skip
    raise SystemExit(0 if all(job.result() for job in jobs) else 1)


if __name__ == "__main__":
    main()
