"""What an engine itself counted, by its metrics: the one witness that no router can speak for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from stoker.engines import find, names

TOTALS = (
    "requests_total", "prompt_tokens_total", "generated_tokens_total", "draft_tokens_total", "accepted_tokens_total",
    "drafts_total", "verify_calls_total",
)  # fmt: skip
TELLING = ("requests_total", "generated_tokens_total")  # a page with one of them is the engine's own
BY_POSITION = "accepted_tokens_by_position_total"
POSITION = re.compile(r'position="(\d+)"')


class Counters(NamedTuple):
    """An engine's totals since its start, by their neutral names, and how many requests it is busy with.

    `by_position[i]` counts the draft tokens accepted at place i; empty where it does not tell.
    """

    engine: str
    totals: Mapping[str, int]
    running: int | None
    by_position: tuple[int, ...] = ()

    def since(self, before: Counters) -> dict[str, int]:
        """Returns by how much each total has grown."""
        return {name: value - before.totals[name] for name, value in self.totals.items() if name in before.totals}


def read_counters(text: str) -> Counters | None:
    """Returns the totals in a page of Prometheus's text form; None where no engine that we know wrote it."""
    values = _values(text)
    for engine in names():
        metrics = find(engine).metrics
        if any(metrics.get(name) in values for name in TELLING):
            totals = {name: int(values[theirs]) for name in TOTALS if (theirs := metrics.get(name)) in values}
            running = values.get(metrics["requests_running"])
            by_position = _read_positions(text, metrics[BY_POSITION]) if BY_POSITION in metrics else ()
            return Counters(engine, totals, None if running is None else int(running), by_position)
    return None


def _values(text: str) -> dict[str, float]:
    """Returns each metric's value, added up over its labels."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        name = name.partition("{")[0].strip()
        if name and not line.startswith("#"):
            found[name] = found.get(name, 0.0) + _number(value)
    return found


def _read_positions(text: str, name: str) -> tuple[int, ...]:
    """Returns a metric's value at each position, added up over its other labels."""
    found: dict[int, float] = {}
    for line in text.splitlines():
        if line.startswith(f"{name}{{") and (place := POSITION.search(line)):
            found[int(place[1])] = found.get(int(place[1]), 0.0) + _number(line.rpartition(" ")[2])
    return tuple(int(found.get(place, 0)) for place in range(max(found, default=-1) + 1))


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if abs(value) < 2**63 else 0.0  # also false for NaN
