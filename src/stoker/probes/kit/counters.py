"""What an engine itself counted, by its metrics: the one witness that no router can speak for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from stoker.engines import find, names

TOTALS = ("requests_total", "generated_tokens_total")


class Counters(NamedTuple):
    """An engine's totals since its start, by their neutral names, and how many requests it is busy with."""

    engine: str
    totals: Mapping[str, int]
    running: int | None

    def since(self, before: Counters) -> dict[str, int]:
        """Returns by how much each total has grown."""
        return {name: value - before.totals[name] for name, value in self.totals.items() if name in before.totals}


def read_counters(text: str) -> Counters | None:
    """Returns the totals in a page of Prometheus's text form; None where no engine that we know wrote it."""
    values = _values(text)
    for engine in names():
        metrics = find(engine).metrics
        totals = {name: int(values[theirs]) for name in TOTALS if (theirs := metrics.get(name)) in values}
        if totals:
            running = values.get(metrics["requests_running"])
            return Counters(engine, totals, None if running is None else int(running))
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


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if abs(value) < 2**63 else 0.0  # also false for NaN
