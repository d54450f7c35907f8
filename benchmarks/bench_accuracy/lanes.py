"""Shares the machine's cores out, so that several scenes are measured at once and none takes time from another."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple


class Lane(NamedTuple):
    """The processors of one scene's server and of the tool that measures it; empty: wherever the kernel wants."""

    server: AbstractSet[int] = frozenset()
    tool: AbstractSet[int] = frozenset()


def plan_lanes(count: int, cores: Sequence[AbstractSet[int]]) -> list[Lane]:
    """Returns so many lanes of as many whole cores each, the first for the server; a lane alone is not bound to any.

    Exits where a lane would have less than two cores.
    """
    each = len(cores) // count
    if count == 1:
        return [Lane()]
    if each <= 1:
        raise SystemExit(f"{count} lanes need {2 * count} cores, two each; here are {len(cores)}")
    parts = [cores[begin : begin + each] for begin in range(0, count * each, each)]
    return [Lane(part[0], frozenset().union(*part[1:])) for part in parts]


@contextlib.contextmanager
def bound_to(processors: AbstractSet[int]) -> Iterator[None]:
    """Binds the calling thread, and so whatever it starts meanwhile, to these processors; empty: leaves it as it is."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, processors or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
