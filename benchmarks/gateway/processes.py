"""Starts, watches and ends programs, by pid alone."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
ASK_LIMIT_S = 5.0
LOOK_S = 0.02
GRACE_S = 10.0


def end_cleanly_on_sigterm() -> None:
    """Lets `finally` end what was started when this program itself is told to stop."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def read_tree(pid: int) -> list[int]:
    """Returns a process and all that it started."""
    try:
        root = psutil.Process(pid)
        return [root.pid, *(child.pid for child in root.children(recursive=True))]
    except psutil.NoSuchProcess:
        return []


def read_cpu_s(pids: Iterable[int]) -> float:
    """Returns the processor time of all threads; from each process's own clock, since /proc counts in steps of 10 ms."""
    total_s = 0.0
    for pid in pids:
        with contextlib.suppress(OSError):
            total_s += time.clock_gettime((~pid << 3) | 2)  # what clock_getcpuclockid(3) returns
    return total_s


def read_rss_bytes(pids: Iterable[int]) -> int:
    """Returns the resident memory; pages that processes share are counted in each."""
    total_bytes = 0
    for pid in pids:
        with contextlib.suppress(OSError, IndexError):
            total_bytes += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES
    return total_bytes


def read_busy_s() -> float:
    """Returns the seconds that this machine's processors have worked since it was started."""
    times = psutil.cpu_times()
    idle_s = times.idle + times.iowait + getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
    return float(sum(times) - idle_s)


def wait_until_quiet(limit_s: float, cores: float = 0.1, window_s: float = 0.4) -> None:
    """Waits, up to a limit, until the machine uses less than so many cores."""
    end_s = time.monotonic() + limit_s
    while time.monotonic() < end_s:
        before_s = read_busy_s()
        time.sleep(window_s)
        if (read_busy_s() - before_s) / window_s < cores:
            return


def start_program(
    words: list[str], *, core: int | None = None, more: Mapping[str, str] | None = None, folder: Path = ROOT,
    log: Path | None = None, output: int = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:  # fmt: skip
    """Starts a program, kept to one core where one is given; `more` are variables for it."""

    def keep_to_core() -> None:
        if core is not None:
            os.sched_setaffinity(0, {core})

    with log.open("wb") if log else contextlib.nullcontext(output) as out:
        return subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=out, stderr=out if log else None, cwd=folder,
            env={**os.environ, **(more or {})}, preexec_fn=keep_to_core,
        )  # fmt: skip


def stop_program(process: subprocess.Popen[bytes], grace_s: float = GRACE_S) -> float | None:
    """Ends a program and what it started; returns how long SIGTERM took, None where SIGKILL was needed."""
    members = [psutil.Process(pid) for pid in read_tree(process.pid)]
    begun_s = time.monotonic()
    if process.poll() is None:
        process.terminate()
    _, alive = psutil.wait_procs(members, timeout=grace_s)
    took_s = None if alive else time.monotonic() - begun_s
    for left in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            left.kill()
    psutil.wait_procs(alive, timeout=GRACE_S)
    process.poll()
    return took_s


def ask_json(port: int, path: str, content: object = None, headers: Mapping[str, str] | None = None) -> tuple[int, Any]:
    """Asks a server; returns the status, and the body as JSON or None. GET without content, else POST."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ASK_LIMIT_S)
    body = None if content is None else json.dumps(content)
    try:
        connection.request(
            "GET" if body is None else "POST", path, body, {"Content-Type": "application/json", **(headers or {})}
        )
        reply = connection.getresponse()
        raw = reply.read()
    finally:
        connection.close()
    try:
        return reply.status, json.loads(raw)
    except ValueError:
        return reply.status, None


def wait_for(what: str, check: Callable[[], bool], limit_s: float) -> None:
    """Waits until something is so; raises TimeoutError with its name."""
    end_s = time.monotonic() + limit_s
    while time.monotonic() < end_s:
        with contextlib.suppress(OSError, http.client.HTTPException):
            if check():
                return
        time.sleep(LOOK_S)
    raise TimeoutError(f"waited {limit_s:g} s for {what}")
