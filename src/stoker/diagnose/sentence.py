"""Says a diagnosis in one sentence, for where there is room for no more. Pure."""

from __future__ import annotations

import re

from stoker.diagnose.signs import FAULTS
from stoker.records import Diagnosis, LogLine

LONGEST = 160


def in_one_sentence(told: Diagnosis) -> str:
    """Returns the first finding; without one that is likely, the most telling line; empty where there is neither."""
    top = next(iter(told.findings), None)
    is_sure = top is not None and top.confidence != "possible"
    if top is not None and is_sure and not (told.unknown and top.severity == "slow"):
        return f"{top.title} ({top.confidence}; rule {top.rule})"
    perhaps = f"; possible: {top.title} (rule {top.rule})" if top is not None and not is_sure else ""
    line = most_telling(told)
    if line and not (told.breaks_off and told.ready):  # the last line of one that served may hold a client's words
        return f"no rule explains it; it said: {_short(line.text)}{perhaps}"
    return perhaps.removeprefix("; ") or ("it was told to stop" if told.stopped else "")


def most_telling(told: Diagnosis) -> LogLine | None:
    """Returns of the lines that nobody explains the first that looks most like a fault; where none does, the last."""
    if told.breaks_off or not told.unknown:
        return next(reversed(told.unknown), None)
    return min(told.unknown, key=lambda one: (_rank(one.text), one.line))


def _rank(text: str) -> int:
    return next((rank for rank, pattern in enumerate(FAULTS) if re.search(pattern, text)), len(FAULTS))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
