"""What an engine's start was made of, read from its own log lines. Pure.

lines -> the last start among them -> times -> spans by the engine's signs -> stages, and what none of them explains
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from stoker.engines import Engine, find, names
from stoker.records import Timeline
from stoker.supervise.logs import visible
from stoker.supervise.starts.log_clock import last_start, read_clock
from stoker.supervise.starts.stages import StageReader

Heard = tuple[float | None, str]
MOST_LINES = 20_000  # of those that tell something; a start has some dozens of them


def read_timeline(
    engine: Engine, lines: Iterable[Heard], begun_at: float | None = None, ready_at: float | None = None,
    proved_at: float | None = None,
) -> Timeline:  # fmt: skip
    """Returns the last start in a log; `lines` are texts with the time at which each arrived, if that is known.

    `begun_at` and `ready_at` are seconds since the epoch, as the arrivals are; without them the log alone is the clock.
    `proved_at` is when it had given a first answer, where a gate came between that and `ready_at`.
    """
    heard = [(arrived, visible(text.encode(errors="replace"))) for arrived, text in lines]
    first, end = last_start(engine.log_form, [text for _, text in heard])
    reading = StageReader(engine, begun_at)
    for line in read_clock(engine.log_form, heard[first:end], begun_at):
        reading.read(line)
    return reading.timeline(ready_at, proved_at)


def recognise(text: str) -> str | None:
    """Returns the engine whose signs are most frequent in a log, or None where there are none.

    By which words one says that it is ready counts for nothing: every program with the same web server says them.
    """
    engines = [find(name) for name in names()]
    ready = [re.compile(engine.log_form.ready) for engine in engines]
    counts = {engine.name: _count_signs(engine, text, ready) for engine in engines}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else None


def _count_signs(engine: Engine, text: str, but_not: list[re.Pattern[str]]) -> int:
    found = (sign[0] for pattern in _patterns(engine) for sign in pattern.finditer(text))
    return sum(1 for said in found if not _is_telling(but_not, said))


def _patterns(engine: Engine) -> list[re.Pattern[str]]:
    form = engine.log_form
    return [re.compile(pattern) for pattern in (form.starts, *(sign.pattern for sign in form.signs))]


def _is_telling(patterns: list[re.Pattern[str]], text: str) -> bool:
    return any(pattern.search(text) for pattern in patterns)


class TimelineWatch:
    """Hears a start as it happens; keeps only the lines that tell something, so that a long load costs no memory."""

    def __init__(self, engine: Engine, begun_at: float) -> None:
        self._engine = engine
        self._begun_at = begun_at
        self._patterns = [*_patterns(engine), re.compile(engine.log_form.ready)]
        self._heard: list[Heard] = []

    def add(self, lines: Iterable[str], arrived_at: float) -> None:
        """Takes lines that were read just now."""
        telling = [(arrived_at, text) for text in lines if _is_telling(self._patterns, text)]
        self._heard += telling[: MOST_LINES - len(self._heard)]

    def finish(self, ready_at: float | None, proved_at: float | None = None) -> Timeline:
        """Returns the start as far as it was heard; `ready_at` is when the engine had proved itself, None if it did not."""
        return read_timeline(self._engine, self._heard, self._begun_at, ready_at, proved_at)
