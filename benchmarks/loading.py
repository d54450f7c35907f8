"""Measures how fast a set of safetensors files comes from a cold disk: as engines load them, and with the read-ahead.

    python benchmarks/loading.py --folder /where/models/lie --gb 4 --runs 5

Loaders are processes of their own. Before each run the files are dropped from the page cache, and it is checked that nothing
stayed; nobody needs to be root for that. A disk behind a hypervisor may still answer from the host's memory: the set should
then be larger than that, or the rates be read against the direct read of the same run.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import platform
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from stoker.box import LocalBox
from stoker.facts.machine.memory import read_memory
from stoker.facts.machine.read_rate import measure_file
from stoker.fetch.page_cache import CachedFile
from stoker.fetch.readahead import ReadAhead
from stoker.records import GIB, MIB, ReadAheadResult

GB = 10**9
SHARDS = 4
TENSOR_BYTES = 24 * MIB  # a projection of a model of some ten billion parameters, in 16 bits
LIMIT_S = 600
# A GPU that takes 2 GB/s through a buffer, which is what copies of many small tensors were seen to do at best.
TAKES_BYTES_PER_S = 2 * GB
WAYS = (
    "mapped", "mapped, with read-ahead",
    "mapped and copied", "mapped and copied, with read-ahead",
    "mapped page by page", "mapped page by page, with read-ahead",
    "read",
)  # fmt: skip


def write_set(folder: Path, size_bytes: int) -> list[Path]:
    """Writes the files: random bytes, so that no disk stores less than it says."""
    tensors = max(1, size_bytes // SHARDS // TENSOR_BYTES)
    return [_write_shard(folder / f"model-{at:05}-of-{SHARDS:05}.safetensors", tensors) for at in range(1, SHARDS + 1)]


def _write_shard(path: Path, tensors: int) -> Path:
    offsets = {f"t{at:04}": [at * TENSOR_BYTES, (at + 1) * TENSOR_BYTES] for at in range(tensors)}
    head = json.dumps({
        name: {"dtype": "BF16", "shape": [TENSOR_BYTES // 2], "data_offsets": place} for name, place in offsets.items()
    }).encode()  # fmt: skip
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(head)) + head)
        for _ in range(tensors):
            file.write(os.urandom(TENSOR_BYTES))
        file.flush()
        os.fsync(file.fileno())
    return path


def load(way: str, files: list[Path]) -> None:
    """Loads the files as an engine's worker does; this is the other process."""
    for path in files:
        if way == "read":
            _read(path)
        else:
            _walk(path, copies="copied" in way, alone="page by page" in way)


def _read(path: Path) -> None:
    block = bytearray(16 * MIB)
    with path.open("rb", buffering=0) as file:
        while file.readinto(block):
            pass


def _walk(path: Path, copies: bool, alone: bool) -> None:
    """Touches every page of every tensor in their order, or copies each away in pieces at the rate of the GPU.

    `alone` is without the kernel's own reading around a fault, as on file systems and devices where it is small.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        mapped.madvise(mmap.MADV_RANDOM if alone else mmap.MADV_NORMAL)
        (head_bytes,) = struct.unpack("<Q", mapped[:8])
        for tensor in json.loads(mapped[8 : 8 + head_bytes]).values():
            start, end = (8 + head_bytes + offset for offset in tensor["data_offsets"])
            if copies:
                _copy(mapped, start, end)
            else:
                mapped[start : end : mmap.PAGESIZE]


def _copy(mapped: mmap.mmap, start: int, end: int) -> None:
    until = time.perf_counter() + (end - start) / TAKES_BYTES_PER_S
    for place in range(start, end, 4 * MIB):
        mapped[place : min(end, place + 4 * MIB)]
    time.sleep(max(0.0, until - time.perf_counter()))


def drop(files: list[Path]) -> None:
    """Drops the files from the page cache, and makes sure of it."""
    for path in files:
        file = CachedFile(path)
        stayed = file.drop(0, file.size)
        file.close()
        assert stayed == 0, f"{stayed:,} bytes of {path.name} stayed in the page cache"


def run_disk(files: list[Path]) -> float:
    """Returns the bytes a second of a sequential read around the page cache."""
    rates = [measure_file(path, limit_bytes=path.stat().st_size, limit_s=LIMIT_S) for path in files]
    return sum(rate.read_bytes for rate in rates) / sum(rate.seconds for rate in rates)


def run_way(way: str, files: list[Path], window_bytes: int) -> tuple[float, ReadAheadResult | None]:
    """Returns the bytes a second of one cold load in a process, and what the read-ahead did."""
    files = files[:1] if "page by page" in way else files  # a hundred times slower
    drop(files)
    words = [sys.executable, __file__, "--load", way.partition(",")[0], *map(str, files)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as loader:
        assert loader.stdin and loader.stdout
        loader.stdout.readline()  # Python has started
        begun = time.perf_counter()
        follow = _follow(files, loader, window_bytes) if way.endswith("read-ahead") else None
        loader.stdin.close()
        assert loader.wait(LIMIT_S) == 0
        seconds = time.perf_counter() - begun
    return sum(path.stat().st_size for path in files) / seconds, follow() if follow else None


def _follow(files: list[Path], loader: subprocess.Popen[bytes], window_bytes: int) -> Callable[[], ReadAheadResult]:
    results: list[ReadAheadResult] = []
    ahead = ReadAhead(
        files,
        lambda: [loader.pid] if loader.poll() is None else [],
        window_bytes,
        read_memory=lambda: read_memory(LocalBox()),
    )
    thread = threading.Thread(target=lambda: results.append(ahead.run()))
    thread.start()

    def end() -> ReadAheadResult:
        ahead.stop()
        thread.join()
        assert results[0].read_bytes, f"nothing was read ahead: {results[0].ended}"
        return results[0]

    return end


def measure(files: list[Path], runs: int, window_bytes: int) -> None:
    """Measures each way in turn, as often as was asked for, and prints a table."""
    rates: dict[str, list[float]] = {way: [] for way in ("the disk, around the page cache", *WAYS)}
    disk = rates["the disk, around the page cache"]
    print(
        "| run | way | MB/s | of the disk | read ahead | most held | CPU of the read-ahead |\n|---|---|---|---|---|---|---|"
    )
    for run in range(1, runs + 1):
        drop(files)
        disk.append(run_disk(files))
        print(f"| {run} | the disk | {disk[-1] / 1e6:.0f} | | | | |", flush=True)
        for way in WAYS:
            cpu = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
            rate, ahead = run_way(way, files, window_bytes)
            cpu = sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - cpu
            rates[way].append(rate)
            told = (
                f"{ahead.read_bytes / MIB:.0f} MiB | {ahead.most_held_bytes / MIB:.0f} MiB | {cpu:.2f} s" if ahead else "| |"
            )
            print(f"| {run} | {way} | {rate / 1e6:.0f} | {rate / disk[-1]:.2f} | {told} |", flush=True)
    print("\n| way | median MB/s | lowest | highest | of the disk, median |\n|---|---|---|---|---|")
    for way, found in rates.items():
        share = statistics.median(one / its for one, its in zip(found, disk, strict=True))
        low, high = min(found) / 1e6, max(found) / 1e6
        print(f"| {way} | {statistics.median(found) / 1e6:.0f} | {low:.0f} | {high:.0f} | {share:.2f} |")


def read_words() -> argparse.Namespace:
    """Returns what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where the files are written and removed; it must be on a disk")
    parser.add_argument("--gb", type=float, default=4.0)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--window-mib", type=int, default=2048)
    parser.add_argument("--load", metavar="WAY", help="be the loader: what this program starts of itself")
    parser.add_argument("files", type=Path, nargs="*", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Writes the files, measures and prints, or is the loader."""
    words = read_words()
    if words.load:
        print("ready", flush=True)
        sys.stdin.read()
        load(words.load, words.files)
        return
    if words.folder is not None and not words.folder.is_dir():
        sys.exit(f"there is no folder {words.folder}")
    with tempfile.TemporaryDirectory(dir=words.folder, prefix="stoker-loading-") as folder:
        print(f"{platform.machine()}, Linux {platform.release()}, {os.cpu_count()} processors, "
              f"{read_memory(LocalBox()).total_bytes / GIB:.0f} GiB, Python {platform.python_version()}, "
              f"load {os.getloadavg()[0]:.1f} before\n")  # fmt: skip
        measure(write_set(Path(folder), int(words.gb * GB)), words.runs, words.window_mib * MIB)


if __name__ == "__main__":
    main()
