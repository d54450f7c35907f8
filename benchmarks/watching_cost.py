"""What watching ten services costs the daemon: processor and memory, beside the same daemon that does not look.

    python -m benchmarks.watching_cost --write docs/measured/watching.md

Ten engines that count tokens and do nothing else, each with a page of 60 KB (llama.cpp's own lines, and SGLang's recorded
page beside them), READY in one real daemon. Twice: looked at every 15 s, and never, which is once in 300 s while it is
measured for less. Processor time is the daemon's own clock, memory its resident pages. The machine has to be quiet.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.gateway.document import write_part
from benchmarks.gateway.machine import describe_machine
from benchmarks.gateway.processes import ROOT, end_cleanly_on_sigterm, read_cpu_s, read_rss_bytes
from benchmarks.gateway.stoker_peer import StokerHome
from stoker.config import demo_model
from stoker.watch.engine_page import read_page

SERVICES = 10
LOOKING_S, NOT_LOOKING_S = 15.0, 300.0
SETTLE_S = 40.0
PAGES = ROOT / "tests" / "watch" / "pages"
OURS, BESIDE = PAGES / "llamacpp-b11549-draft.txt", PAGES / "sglang-0.5.16-standalone.txt"
MIB = 1024**2
MOVING = {"tokens_predicted": 60, "prompt_tokens": 300, "spec_decode_num_draft_tokens": 90,
          "spec_decode_num_accepted_tokens": 40, "spec_decode_num_drafts": 30}  # fmt: skip


class Engine(BaseHTTPRequestHandler):
    """Answers a proof, and at /metrics what an engine says that works all the time."""

    protocol_version = "HTTP/1.1"
    model = ""
    beside = b""
    begun_s = time.monotonic()

    def log_message(self, *_: Any) -> None:
        """Stays quiet."""

    def do_GET(self) -> None:
        """Answers the health question and the scrape."""
        self._reply(self._page() if self.path == "/metrics" else b'{"status": "ok"}', "text/plain")

    def _page(self) -> bytes:
        worked_s = time.monotonic() - self.begun_s
        counters = (f"llamacpp:{name}_total {int(worked_s * rate)}" for name, rate in MOVING.items())
        return "\n".join([*counters, "llamacpp:requests_processing 1", ""]).encode() + self.beside

    def do_POST(self) -> None:
        """Answers a chat with two tokens."""
        self.rfile.read(int(self.headers["content-length"]))
        events = ({"model": self.model, "choices": [{"index": 0, "delta": {"content": word}}]} for word in ("Hello", " you"))
        text = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
        self._reply(text.encode(), "text/event-stream")

    def _reply(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def stand_in(words: list[str]) -> None:
    """Serves as an engine, called with llama-server's words."""
    if words == ["--version"]:
        print("version: 1 (stand-in)")
        return
    options = dict(pairwise(words))
    Engine.model, Engine.beside = options["--alias"], BESIDE.read_bytes()
    ThreadingHTTPServer.daemon_threads = True
    ThreadingHTTPServer(("127.0.0.1", int(options["--port"])), Engine).serve_forever()


class Cost(NamedTuple):
    """What a daemon took: share of a core, and the most resident bytes."""

    core_share: float
    rss_bytes: int


@contextmanager
def watched(every_s: float) -> Iterator[StokerHome]:
    """Runs a daemon with ten services that are READY."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "llama-server"
        program.write_text(f'#!/bin/sh\ncd {ROOT} && exec {sys.executable} -m benchmarks.watching_cost --engine "$@"\n')
        program.chmod(0o755)
        names = [f"service-{number}" for number in range(SERVICES)]
        table = '[service.{name}]\nmodel = "{model}"\nserver = "{program}"\nserved_name = "{name}"\ngate = []\n'
        services = "".join(table.format(name=name, model=demo_model(), program=program) for name in names)
        home = StokerHome(f"[watch]\nevery_s = {every_s}\n{services}")
        try:
            for name in names:
                home.run("up", name)
            yield home
        finally:
            home.stop()


def measure(every_s: float, length_s: float) -> Cost:
    """Returns what a daemon takes that looks so often."""
    with watched(every_s) as home:
        pids = home.pids()
        time.sleep(SETTLE_S)
        before_s, begun_s, rss = read_cpu_s(pids), time.monotonic(), []
        while time.monotonic() - begun_s < length_s:
            time.sleep(1.0)
            rss.append(read_rss_bytes(pids))
        return Cost((read_cpu_s(pids) - before_s) / (time.monotonic() - begun_s), max(rss))


def page_ms() -> float:
    """Returns how long SGLang's recorded page takes to read, in ms of processor time; the middle of many."""
    text, took_ms = BESIDE.read_bytes(), []
    for _ in range(50):
        begun_ns = time.process_time_ns()
        read_page("sglang", text)
        took_ms.append((time.process_time_ns() - begun_ns) / 1e6)
    return statistics.median(took_ms)


def render(looking: Cost, not_looking: Cost, length_s: float) -> str:
    """Returns the figures as Markdown."""
    rows = [("looks every 15 s", looking), ("does not look", not_looking)]
    lines = ["| the daemon with ten READY services | of a core | resident |", "|---|--:|--:|"]
    lines += [f"| {name} | {cost.core_share:.2%} | {cost.rss_bytes / MIB:.1f} MiB |" for name, cost in rows]
    more = looking.core_share - not_looking.core_share, (looking.rss_bytes - not_looking.rss_bytes) / MIB
    lines += [f"| watching costs | {more[0]:.2%} | {more[1]:.1f} MiB |", ""]
    lines.append(
        f"Over {length_s:.0f} s each; SGLang's page of {BESIDE.stat().st_size / 1000:.0f} KB takes {page_ms():.1f} ms"
    )
    return "\n".join(lines) + f" to read. {describe_machine()}"


def main() -> None:
    """Measures, prints, and ends with 1 where it is more than was promised: 1 % of a core, 10 MB."""
    if sys.argv[1:2] == ["--engine"]:
        stand_in(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=90.0)
    parser.add_argument("--write", type=Path, help="a page whose part of this name is replaced")
    options = parser.parse_args()
    end_cleanly_on_sigterm()
    looking, not_looking = measure(LOOKING_S, options.seconds), measure(NOT_LOOKING_S, options.seconds)
    text = render(looking, not_looking, options.seconds)
    print(text)
    if options.write:
        write_part(options.write, "cost", text)
    is_kept = looking.core_share - not_looking.core_share < 0.01 and looking.rss_bytes - not_looking.rss_bytes < 10e6
    sys.exit(0 if is_kept else 1)


if __name__ == "__main__":
    main()
