"""Says a diagnosis in one sentence, for where there is room for no more. Pure."""

from __future__ import annotations

from stoker.records import Diagnosis

LONGEST = 160


def in_one_sentence(told: Diagnosis) -> str:
    """Returns the first finding; without one that is likely, the last of the telling lines; empty where there is neither."""
    top = next(iter(told.findings), None)
    if top is not None and top.confidence != "possible":
        return f"{top.title} ({top.confidence}; rule {top.rule})"
    perhaps = f"; possible: {top.title} (rule {top.rule})" if top is not None else ""
    if told.unknown and not (told.breaks_off and told.ready):  # the last line of one that served may hold a client's words
        return f"no rule explains it; it said: {_short(told.unknown[-1].text)}{perhaps}"
    return perhaps.removeprefix("; ")


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
