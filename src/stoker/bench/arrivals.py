"""When requests come: schedules that a seed makes, and traces that somebody recorded. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from random import Random

import msgspec

from stoker.errors import WrongUse
from stoker.records import BenchLoad, Record


class TraceLine(Record, frozen=True):
    """A line of a trace: when a request came, in seconds from the first, and how long it and its answer were."""

    at_s: float
    prompt_tokens: int
    new_tokens: int


def due_times_s(load: BenchLoad, count: int, seed: str) -> list[float | None]:
    """Returns when each of so many requests is due; None for a closed load, where each waits for its turn.

    The gaps between them are constant, or drawn from a gamma distribution of that mean, whose shape is the burstiness; a
    shape of 1 is a Poisson process.
    """
    if load.arrivals == "closed" or load.rate_per_s is None:
        return [None] * count
    random = Random(seed)
    shape = 1.0 if load.arrivals == "poisson" else load.burstiness or 1.0
    mean_s = 1 / load.rate_per_s
    gaps = [mean_s if load.arrivals == "constant" else random.gammavariate(shape, mean_s / shape) for _ in range(count - 1)]
    return list(accumulate(gaps, initial=0.0))


def read_trace(file: Path) -> Sequence[TraceLine]:
    """Returns a trace: a JSON object a line with `at_s`, `prompt_tokens` and `new_tokens`. Raises WrongUse."""
    try:
        lines = [line for line in file.read_bytes().splitlines() if line.strip()]
        found = [msgspec.json.decode(line, type=TraceLine) for line in lines]
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as problem:
        raise WrongUse(
            f"the trace {file} cannot be read", why=getattr(problem, "strerror", None) or str(problem),
            next_step='each line is like {"at_s": 1.5, "prompt_tokens": 512, "new_tokens": 128}',
        ) from problem  # fmt: skip
    if not found or any(one.at_s < 0 or one.prompt_tokens < 1 or one.new_tokens < 1 for one in found):
        raise WrongUse(f"the trace {file} holds no requests, or impossible ones", why="times begin at 0, lengths at 1")
    begin_s = min(one.at_s for one in found)
    return sorted((msgspec.structs.replace(one, at_s=one.at_s - begin_s) for one in found), key=lambda one: one.at_s)
