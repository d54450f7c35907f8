"""Records what a real engine counted while it drafted well, worse and in vain, did other work, and was started anew.

    python -m benchmarks.watched_recording --write benchmarks/recorded --at-once 3

llama.cpp with the bundled model and its draft, asked one request after the other and looked at after each, and now and then
in between. `benchmarks/watched_replay.py` plays it, each look for 15 s, so that hours of work take minutes to record, and a
busy machine records the same. What is real is how much of the drafts is accepted, how that scatters between requests, and
that counters begin anew with an engine; time is not.
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
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import NamedTuple, TypeAlias

import httpx

from benchmarks.gateway.processes import ROOT, wait_for
from stoker.config import demo_model
from stoker.facts.machine.ports import pick_free_port
from stoker.watch.engine_page import read_page
from stoker.watch.reading import Asked, make_sample

RECORDED = Path(__file__).parent / "recorded"
COUNTERS = ("generated", "prompted", "drafted", "accepted", "steps")
FIELDS = ("launch", *COUNTERS)
USUAL, FREE = {"temperature": 0.6}, {"temperature": 1.3, "top_k": 0, "top_p": 1.0, "min_p": 0.0}  # how tokens are drawn
IDLE_SHARE, READY_LIMIT_S, REPLY_LIMIT_S = 0.2, 60.0, 120.0
TEXTS = ROOT / "src" / "stoker" / "bench" / "texts"
DRAFT = Path(demo_model()).with_name("stoker-demo-draft-Q8_0.gguf")
Row: TypeAlias = tuple[int | None, ...]


class Work(NamedTuple):
    """What is asked: pieces of a text to go on with, how many tokens of answer, and whether any token may be drawn."""

    text: str
    prompt_letters: int
    answer: int
    is_free: bool = False


CODE, CHAT, PROSE = Work("code.txt", 400, 60), Work("chat.txt", 200, 60), Work("prose.txt", 60, 110)


class Kind(NamedTuple):
    """One recording: its work, every which word of the draft means another (0: none), its looks, and after how many the
    engine is started anew."""

    work: Work
    looks: int
    spoilt: int = 0
    launch_looks: int = sys.maxsize


KINDS = {
    "code": Kind(CODE, 720, launch_looks=360),
    "chat": Kind(CHAT, 240),
    "prose": Kind(PROSE, 240),
    "free-prose": Kind(PROSE._replace(is_free=True), 160),
    "code-worse": Kind(CODE, 160, spoilt=2),
    "code-useless": Kind(CODE, 160, spoilt=1),
}


@contextmanager
def engine(draft: Path) -> Iterator[str]:
    """Runs llama.cpp with a draft; yields its address."""
    port = pick_free_port("127.0.0.1")
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
        "prompt": text[at : at + letters], "max_tokens": int(work.answer * chance.uniform(0.5, 1.6)),
        "cache_prompt": False, "seed": chance.randrange(2**31), **(FREE if work.is_free else USUAL),
    }  # fmt: skip
    client.post("/v1/completions", json=body).raise_for_status()


def record(kind: Kind) -> Iterator[Row]:
    """Yields what each look saw."""
    with tempfile.TemporaryDirectory() as folder:
        draft = DRAFT
        if kind.spoilt:
            from useless_drafts import write_useless_gguf  # beside the tests, which exchange it as well

            draft = Path(folder) / "spoilt.gguf"
            write_useless_gguf(DRAFT, draft, kind.spoilt)
        text, chance = (TEXTS / kind.work.text).read_text(), random.Random(kind.work.text)
        for launch, begins in enumerate(range(0, kind.looks, kind.launch_looks), 1):
            looks = min(kind.launch_looks, kind.looks - begins)
            yield from ((launch, *seen) for seen in _record_launch(draft, kind.work, text, looks, chance))


def _record_launch(draft: Path, work: Work, text: str, looks: int, chance: random.Random) -> Iterator[Row]:
    with engine(draft) as url, httpx.Client(base_url=url, trust_env=False, timeout=REPLY_LIMIT_S) as client:
        for _ in range(looks):
            if chance.random() > IDLE_SHARE:
                ask(client, work, text, chance)
            page = read_page("llamacpp", client.get("/metrics").content)
            sample = make_sample(page.values, None, Asked(0.0, 1, 0, None), "")
            yield tuple(getattr(sample, field) for field in COUNTERS)


def write(folder: Path, name: str) -> None:
    """Records one kind."""
    with (folder / f"{name}.csv").open("w", newline="", buffering=1) as file:
        csv.writer(file, lineterminator="\n").writerows(itertools.chain([FIELDS], record(KINDS[name])))


def main() -> None:
    """Records, which takes some minutes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, default=RECORDED)
    parser.add_argument("--at-once", type=int, default=1, help="so many engines beside each other")
    words = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tests"))
    words.write.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(words.at_once) as pool:
        list(pool.map(write, repeat(words.write), KINDS))


if __name__ == "__main__":
    main()
