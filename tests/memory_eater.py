"""An engine that eats memory and never gets healthy: a process of its own, told what to do by the variable `EATER`.

`take_mib` in steps of 4 MiB, without a pause or at `mib_per_s`; `ignores_term`: SIGTERM does nothing; `gives_back_s`: after
SIGTERM it frees its memory little by little; `says`: what it prints once it has taken `up_mib`, or all; `orphan`: a child in
a session of its own takes the memory instead. Who takes it appends its pid to the file `pids`. After a minute it ends by
itself, for a test that was killed.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

STEP_BYTES = 4 * 1024**2
BLOCK = b"\1" * STEP_BYTES


def eat(task: dict[str, Any], blocks: list[mmap.mmap]) -> None:
    """Takes memory, page by page."""
    begun_s = time.monotonic()
    up_at = int(task.get("up_mib", task["take_mib"]) * 1024**2 / STEP_BYTES) - 1
    for number in range(int(task["take_mib"] * 1024**2 / STEP_BYTES)):
        block = mmap.mmap(-1, STEP_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        block[:] = BLOCK
        blocks.append(block)
        if number == up_at and "says" in task:
            print(task["says"], flush=True)
        if rate := task.get("mib_per_s"):
            due_s = begun_s + (number + 1) * STEP_BYTES / 1024**2 / rate
            time.sleep(max(0.0, due_s - time.monotonic()))


def give_back(seconds: float, blocks: list[mmap.mmap]) -> None:
    """Frees block after block over some seconds, then ends."""
    pause_s = seconds / max(1, len(blocks))
    while blocks:
        blocks.pop().close()
        time.sleep(pause_s)
    os._exit(0)


def main() -> None:
    """Does what the variable says until it is ended."""
    if "--version" in sys.argv:
        return
    task = json.loads(os.environ["EATER"])
    blocks: list[mmap.mmap] = []
    asked_to_end = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: None if task.get("ignores_term") else asked_to_end.set())
    if task.get("orphan") and os.fork() == 0:
        os.setsid()
    elif task.get("orphan"):
        signal.pause()
    with Path(task["pids"]).open("a") as file:
        file.write(f"{os.getpid()}\n")
    signal.alarm(60)
    threading.Thread(target=eat, args=(task, blocks), daemon=True).start()
    asked_to_end.wait()
    give_back(task.get("gives_back_s", 0.0), blocks)


def write_eater(folder: Path, **task: Any) -> Path:
    """Writes a program that eats memory; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "eater"
    program.write_text(f"#!/bin/sh\nEATER='{json.dumps(task)}' exec {sys.executable} -P {__file__} \"$@\"\n")
    program.chmod(0o755)
    return program


if __name__ == "__main__":
    main()
