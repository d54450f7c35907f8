"""What a real engine counted while it drafted well, drafted nothing of use, and did other work; recorded, to be replayed.

    python -m benchmarks.watched_recording --write benchmarks/recorded

llama.cpp with the bundled model and its draft, asked one request after the other and looked at after each, and now and then
in between; in a replay each look stands for 15 s, so that hours of work take minutes to record, on a busy machine too. What
is real is how much of the drafts is accepted, and how that scatters between requests; time is not.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx

from benchmarks.gateway.processes import ROOT, free_port, wait_for
from stoker.config import demo_model
from stoker.watch.engine_page import read_page
from stoker.watch.reading import Asked, make_sample
from stoker.watch.samples import EngineSample

RECORDED = Path(__file__).parent / "recorded"
FIELDS = ("running", "generated", "prompted", "drafted", "accepted", "steps")
COUNTERS = FIELDS[1:]
STANDS_FOR_S, IDLE_SHARE = 15.0, 0.2
READY_LIMIT_S = 60.0
TEXTS = ROOT / "src" / "stoker" / "bench" / "texts"
DRAFT = Path(demo_model()).with_name("stoker-demo-draft-Q8_0.gguf")


class Work(NamedTuple):
    """What is asked: pieces of a text to go on with, and how many tokens of answer."""

    text: str
    prompt_letters: int
    answer: int


CODE, PROSE = Work("code.txt", 400, 44), Work("prose.txt", 60, 110)


class Kind(NamedTuple):
    """One recording: its work, whether the draft is of use, and how many looks."""

    work: Work
    is_useful: bool
    looks: int


KINDS = {"usual": Kind(CODE, True, 700), "useless": Kind(CODE, False, 120), "other-work": Kind(PROSE, True, 120)}


@contextmanager
def engine(draft: Path) -> Iterator[str]:
    """Runs llama.cpp with a draft; yields its address."""
    port = free_port()
    words = ["--model", str(demo_model()), "--alias", "demo", "--host", "127.0.0.1", "--port", str(port), "--metrics"]
    words += ["--spec-type", "draft-simple", "--spec-draft-model", str(draft), "--threads", "1", "--ctx-size", "4096"]
    with subprocess.Popen([sys.executable, "-P", "-m", "stoker.embedded", *words], stderr=subprocess.DEVNULL) as process:
        try:
            wait_for("the engine", lambda: _answers(f"http://127.0.0.1:{port}/health"), READY_LIMIT_S)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


def ask(client: httpx.Client, work: Work, text: str, chance: random.Random) -> None:
    """Has a piece of the text gone on with."""
    letters = int(work.prompt_letters * chance.uniform(0.6, 1.5))
    at = chance.randrange(len(text) - letters)
    body = {
        "prompt": text[at : at + letters], "max_tokens": int(work.answer * chance.uniform(0.5, 1.6)), "temperature": 0.6,
        "cache_prompt": False, "seed": chance.randrange(2**31),
    }  # fmt: skip
    client.post("/v1/completions", json=body).raise_for_status()


def record(kind: Kind) -> Iterator[tuple[int | None, ...]]:
    """Yields what each look saw."""
    with tempfile.TemporaryDirectory() as folder:
        draft = DRAFT
        if not kind.is_useful:
            from useless_drafts import write_useless_gguf  # beside the tests, which exchange it as well

            draft = Path(folder) / "useless.gguf"
            write_useless_gguf(DRAFT, draft)
        text, chance = (TEXTS / kind.work.text).read_text(), random.Random(kind.work.text)
        with engine(draft) as url, httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
            for _ in range(kind.looks):
                if chance.random() > IDLE_SHARE:
                    ask(client, kind.work, text, chance)
                page = read_page("llamacpp", client.get("/metrics").content)
                sample = make_sample(page.values, None, Asked(0.0, 1, 0, None), "")
                yield tuple(getattr(sample, field) for field in FIELDS)


def write(folder: Path) -> None:
    """Records all kinds."""
    folder.mkdir(exist_ok=True)
    for name, kind in KINDS.items():
        with (folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(itertools.chain([FIELDS], record(kind)))


def has_recordings() -> bool:
    """Tells whether everything was recorded here."""
    return all((RECORDED / f"{name}.csv").exists() for name in KINDS)


def read(name: str) -> list[dict[str, int]]:
    """Returns the looks of a recording."""
    with (RECORDED / f"{name}.csv").open() as file:
        return [{field: int(value) for field, value in row.items()} for row in csv.DictReader(file)]


def play(first: str, then: str, is_other_launch: bool) -> Iterator[tuple[EngineSample, float | None]]:
    """Yields the looks of one recording and of another after it, and the gauge that an engine would show of each interval.

    Without another launch the counters of the second go on where those of the first ended.
    """
    base, before, gauge = dict.fromkeys(COUNTERS, 0), None, None
    looks = [(1, one) for one in read(first)] + [(2 if is_other_launch else 1, one) for one in read(then)]
    change = len(read(first))
    for number, (launch, look) in enumerate(looks):
        if number == change and before is not None and not is_other_launch:
            base = {field: before[field] - look[field] for field in COUNTERS}
        now = {field: look[field] + base[field] for field in COUNTERS}
        is_new = before is None or (number == change and is_other_launch)
        gauge = None if is_new else _rate(before, now, gauge)
        before = now
        at_s = number * STANDS_FOR_S
        running = look["running"]
        yield EngineSample(at_s, launch, running, running, 0, work=tuple(now.values()), **now), gauge


def _rate(before: dict[str, int] | None, now: dict[str, int], gauge: float | None) -> float | None:
    drafted = 0 if before is None else now["drafted"] - before["drafted"]
    return gauge if before is None or drafted <= 0 else (now["accepted"] - before["accepted"]) / drafted


def main() -> None:
    """Records, which takes some minutes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, default=RECORDED)
    sys.path.insert(0, str(ROOT / "tests"))
    write(parser.parse_args().write)


if __name__ == "__main__":
    main()
