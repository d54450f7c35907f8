"""Chooses who is measured."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from functools import partial

from benchmarks.gateway.peers import MOCK, Cores, Direct, Entry, Peer, Program
from benchmarks.gateway.stoker_peer import Stoker


def choose(
    names: list[str] | None, entries: dict[str, Entry], cores: Cores, engine: Sequence[str] = MOCK
) -> dict[str, Callable[[], Peer]]:
    """Returns how to start each peer that is asked for and there; says which are left out."""
    chosen: dict[str, Callable[[], Peer]] = {}
    for name in names or ["direct", *entries, "stoker"]:
        if name in ("direct", "stoker"):
            chosen[name] = partial(Direct if name == "direct" else Stoker, cores, engine)
        elif shutil.which(entries[name].program[0]):
            chosen[name] = partial(Program, name, entries[name], cores, engine)
        else:
            print(f"left out: {entries[name].program[0]} is not on PATH", file=sys.stderr)
    return chosen
