"""How fast `stoker diagnose` reads, and in how much memory: logs of several kinds, up to a line without end.

python -m benchmarks.diagnosing [--gib 1] [--write docs/measured/diagnosing.md] prints a table: seconds on the wall and of
the processor, MB/s of it, and memory. Each log is made in a temporary folder and read by a process of its own.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from stoker.records import GIB, MIB

HITS = "## How often it is right\n"  # what `benchmarks.diagnosing_hits` writes from there on is left as it is
CASES = Path(__file__).parents[1] / "tests" / "cases" / "diagnose"
BLOCK = 2**20
READ = """
import resource, sys, time
from stoker.flows.diagnose import diagnose_log
began = time.perf_counter()
told = diagnose_log(sys.argv[1], None)
took_s = time.perf_counter() - began
used = resource.getrusage(resource.RUSAGE_SELF)
print(took_s, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, told.findings[0].rule if told.findings else "-")
"""


def served() -> Iterator[bytes]:
    """Requests with names of their own, as vLLM tells them where it is asked to."""
    chance = random.Random(1)
    while True:
        yield b"".join(
            b"(APIServer pid=498) INFO 11-20 08:06:%02d [logger.py:42] Received request chatcmpl-%032x: temperature=0.%d\n"
            b'(APIServer pid=498) INFO:     127.0.0.1:%d - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
            % (second % 60, chance.getrandbits(128), second % 97, 30000 + second % 9999)
            for second in range(4000)
        )


def crash_loop() -> Iterator[bytes]:
    """A vLLM that is started again and again, with real lines."""
    log = (CASES / "broken-vllm-port-taken.log").read_bytes().partition(b"#! log\n")[2]
    while True:
        yield log * 50


# Every byte a letter but some: words of eight letters, lines of twelve words, and no hexadecimal digit.
LETTERS = bytes(ord("ghijklmnopqrstuvwxyz"[code % 20]) for code in range(256))
WORDS = LETTERS[:221] + b" " * 32 + b"\n" * 3


def new_words() -> Iterator[bytes]:
    """No line and hardly a word comes twice."""
    chance = random.Random(2)
    while True:
        yield chance.randbytes(BLOCK).translate(WORDS)


def new_errors() -> Iterator[bytes]:
    """No line comes twice, and each looks like a fault, so that every one is tried: the worst that a log can be."""
    for block in new_words():
        yield block.replace(b"\n", b"\nERROR 11-20 08:06:02 [core.py:946] ")


def junk() -> Iterator[bytes]:
    """Bytes that are no text."""
    chance = random.Random(4)
    while True:
        yield chance.randbytes(BLOCK)


def one_line() -> Iterator[bytes]:
    """A progress that never ends its line."""
    while True:
        yield b"Loading weights 17% and still going on without any end of this line; " * 10_000


LOGS: dict[str, tuple[Callable[[], Iterator[bytes]], int, str]] = {
    "served": (served, 1, "requests, each told in two lines"),
    "crash loop": (crash_loop, 1, "an engine that is started again and again"),
    "new words": (new_words, 1, "no line and hardly a word comes twice"),
    "junk": (junk, 1, "bytes that are no text"),
    "one line": (one_line, 2, "a progress that never ends its line; twice as long"),
    "new errors": (new_errors, 1, "each line looks like a fault, and none comes twice"),
}
PAGE = """# How fast and how rightly a log is diagnosed

<!-- Written by `python -m benchmarks.diagnosing --write docs/measured/diagnosing.md`. -->

{when}, on {machine}, Python {python}. {busy}
Each log ends with one fault, which was found; its file was just written, so that reading it from the disk is not counted.
"CPU" is the processor's time of the whole process, with starting Python and reading the rules; MB/s are by it.

| log | GiB | CPU s | MB/s | wall s | peak MiB | what it is |
| --- | ---: | ---: | ---: | ---: | ---: | --- |
{rows}

Wanted: 1 GB (0.93 GiB) in 10 s and 100 MB of memory. A log of new faults without end misses it by
far, since each of its lines is tried against patterns.
"""


def write_log(file: Path, blocks: Iterator[bytes], size_bytes: int) -> None:
    """Writes so many bytes, and a fault as the last line."""
    with file.open("wb") as out:
        while out.tell() < size_bytes:
            out.write(next(blocks)[: size_bytes - out.tell()])
        out.write(b"\n(EngineCore pid=1) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.\n")


def measure(file: Path) -> tuple[float, float, int, str]:
    """Returns seconds on the wall and of the processor, bytes of memory, and the rule that was found."""
    done = subprocess.run([sys.executable, "-c", READ, file], capture_output=True, text=True, check=True)
    wall_s, cpu_s, peak_bytes, rule = done.stdout.split()
    return float(wall_s), float(cpu_s), int(peak_bytes), rule


def page(rows: list[str]) -> str:
    """Returns the page with the table's rows, and says whether others used the machine too."""
    cores, load = os.cpu_count() or 1, os.getloadavg()[1]
    model = next(
        (line.partition(": ")[2] for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), ""
    )
    busy = f"The machine was busy with other work (load {load:.0f} on {cores} cores), which lengthens both kinds of seconds."
    return PAGE.format(
        when=time.strftime("%Y-%m-%d"), machine=f"{cores} shared cores of {model or platform.machine()}",
        python=platform.python_version(), busy=busy if load > cores else "Nothing else ran.", rows="\n".join(rows),
    )  # fmt: skip


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=1.0)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    print(f"{'log':12} {'wall s':>8} {'cpu s':>8} {'MB/s':>8} {'peak MiB':>9}  first finding", flush=True)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (blocks, times, says) in LOGS.items():
            size_bytes = int(given.gib * times * GIB)
            write_log(Path(folder) / "log", blocks(), size_bytes)
            wall_s, cpu_s, peak_bytes, rule = measure(Path(folder) / "log")
            rate, peak_mib = size_bytes / cpu_s / 1e6, peak_bytes / MIB
            print(f"{name:12} {wall_s:8.1f} {cpu_s:8.1f} {rate:8.0f} {peak_mib:9.0f}  {rule}", flush=True)
            rows.append(
                f"| {name} | {given.gib * times:g} | {cpu_s:.1f} | {rate:.0f} | {wall_s:.1f} | {peak_mib:.0f} | {says} |"
            )
    if given.write:
        _, heading, hits = given.write.read_text().partition(HITS)
        given.write.write_text(page(rows) + (f"\n{heading}{hits}" if heading else ""))


if __name__ == "__main__":
    main()
