"""Shared memory that killed engines leave in /dev/shm: it is memory, and on no process's account any more.

Python unlinks a segment when its last user ends, by a process of its own, the resource tracker; that one is killed with the
others. vLLM 0.32.0 leaves two, of 160 and 240 MiB as soon as they are filled; SGLang 0.5.16 leaves small ones at every end.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from pathlib import Path

import psutil

# As multiprocessing, torch, NCCL, loky and SGLang name what they make; what other programs keep there is left alone.
SEGMENT = re.compile(r" (/dev/shm/(?:psm_|sem\.(?:mp|loky)-|torch_|nccl-|sglang_)[\w.-]+)$", re.MULTILINE)


def read_segments(pids: Iterable[int]) -> set[Path]:
    """Returns the files of shared memory that these processes have in use."""
    found: set[Path] = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            found |= set(map(Path, SEGMENT.findall(Path(f"/proc/{pid}/maps").read_text(errors="replace"))))
    return found


def remove_segments(files: set[Path]) -> None:
    """Removes those of an ended launch that are still there, unless some other process uses them."""
    left = {file for file in files if file.exists()}
    for file in left - read_segments(psutil.pids()) if left else ():
        with contextlib.suppress(OSError):
            file.unlink()
