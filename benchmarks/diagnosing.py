"""How fast `stoker diagnose` reads, and in how much memory: a served log, a crash loop, new words, one line without end.

python -m benchmarks.diagnosing [--gib 1] prints a table: seconds on the wall and of the processor, MB/s and memory. Each
log is made in a temporary folder and read by a process of its own.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from stoker.records import GIB, MIB

CASES = Path(__file__).parents[1] / "tests" / "cases" / "diagnose"
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


def new_words() -> Iterator[bytes]:
    """No line and hardly a word comes twice: the worst that a log can be."""
    chance = random.Random(2)
    letters = "ghijklmnopqrstuvwxyz"
    while True:
        words = ["".join(chance.choices(letters, k=7)) for _ in range(20_000)]
        yield "\n".join(" ".join(words[place : place + 12]) for place in range(0, len(words), 12)).encode() + b"\n"


def one_line() -> Iterator[bytes]:
    """A progress that never ends its line."""
    while True:
        yield b"Loading weights 17% and still going on without any end of this line; " * 10_000


LOGS: dict[str, Callable[[], Iterator[bytes]]] = {
    "served": served, "crash loop": crash_loop, "new words": new_words, "one line": one_line,
}  # fmt: skip


def write_log(file: Path, blocks: Iterator[bytes], size_bytes: int) -> None:
    """Writes so many bytes, and a fault as the last line."""
    with file.open("wb") as out:
        while out.tell() < size_bytes:
            out.write(next(blocks)[: size_bytes - out.tell()])
        out.write(b"\n(EngineCore pid=1) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.\n")


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=1.0)
    size_bytes = int(parser.parse_args().gib * GIB)
    print(f"{'log':12} {'wall s':>8} {'cpu s':>8} {'MB/s':>8} {'peak MiB':>9}  first finding")
    with tempfile.TemporaryDirectory() as folder:
        for name, blocks in LOGS.items():
            file = Path(folder) / "log"
            write_log(file, blocks(), size_bytes)
            done = subprocess.run([sys.executable, "-c", READ, file], capture_output=True, text=True, check=True)
            wall_s, cpu_s, peak_bytes, rule = done.stdout.split()
            rate = size_bytes / float(wall_s) / 1e6
            print(f"{name:12} {float(wall_s):8.1f} {float(cpu_s):8.1f} {rate:8.0f} {int(peak_bytes) / MIB:9.0f}  {rule}")


if __name__ == "__main__":
    main()
