"""What becomes of an engine's log on a disk of 4 MiB that is full, told on standard output; the disk is the folder named."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from stoker.supervise.logs import EngineLog

FILE = Path(sys.argv[1]) / "engine.log"
LIMIT_BYTES, FORMER = 64 * 1024, b"how it began\n"


def main() -> None:
    """Fills the disk with a log that is to be rotated, and makes room again."""
    former, filler = FILE.with_name("engine.log.1"), FILE.with_name("filler")
    former.write_bytes(FORMER)
    FILE.write_bytes(b"x" * LIMIT_BYTES * 2)
    with filler.open("wb", buffering=0) as out, contextlib.suppress(OSError):
        while out.write(b"x" * 4096):
            pass
    log = EngineLog(FILE, LIMIT_BYTES)
    for _ in range(3):
        log.poll()
    print("former" if former.read_bytes() == FORMER else "lost")
    print("whole" if FILE.stat().st_size == 2 * LIMIT_BYTES else "cut")
    print("told" if log.problem else "silent")
    filler.unlink()
    log.poll()
    print("rotated again" if former.stat().st_size == 2 * LIMIT_BYTES and not FILE.stat().st_size else "kept")


main()
