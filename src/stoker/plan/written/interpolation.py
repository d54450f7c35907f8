"""Fills in `${NAME:-default}` as docker compose does, for somebody who has set no variables; what stays open is told."""

from __future__ import annotations

import re

from stoker.plan.written.expansion import PARAMETER

PLAIN = re.compile(r"\$(\$|[A-Za-z_][A-Za-z0-9_]*)")
MOST_DEPTH = 6
MOST_ITEMS = 5_000


class Interpolation:
    """Turns values of a compose file into text. `said` collects a sentence for each variable that is not known."""

    def __init__(self, said: list[str]) -> None:
        self.said = said

    def text(self, value: object) -> str | None:
        """Returns a scalar with its variables filled in; None for nothing, a list or a map."""
        return self._fill(str(value), 0) if isinstance(value, str | int | float) else None

    def texts(self, value: object) -> tuple[str, ...]:
        """Returns the scalars of a list; one scalar counts as a list of it."""
        items = value[:MOST_ITEMS] if isinstance(value, list) else [value]
        return tuple(text for item in items if (text := self.text(item)) is not None)

    def pairs(self, value: object, sign: str = "=") -> tuple[str, ...]:
        """Returns `A=b` for a map or a list of such; a key without a value stands alone."""
        if not isinstance(value, dict):
            return self.texts(value)
        found = [(str(key), self.text(item)) for key, item in list(value.items())[:MOST_ITEMS]]
        return tuple(key if item is None else f"{key}{sign}{item}" for key, item in found)

    def _fill(self, text: str, depth: int) -> str:
        pieces: list[str] = []
        place = 0
        ends = _bracket_ends(text) if "${" in text else {}
        while (sign := text.find("$", place)) >= 0:
            end = ends.get(sign) or _plain_end(text, sign)
            pieces += [text[place:sign], self._value(text[sign:end], depth)]
            place = end
        return "".join([*pieces, text[place:]])

    def _value(self, written: str, depth: int) -> str:
        """Returns what stands for `$$`, `$NAME` or `${NAME...}`."""
        if written in ("$", "$$"):
            return "$"
        inside = written[2:-1] if written.startswith("${") else written[1:]
        found = PARAMETER.fullmatch(inside)
        operator = (found["operator"] or "").lstrip(":") if found else ""
        if found and operator == "-" and depth < MOST_DEPTH:
            return self._fill(found["rest"], depth + 1)
        if operator == "+":
            return ""
        self.said.append(f"`{written[:80]}` is set where compose is called")
        return written


def _bracket_ends(text: str) -> dict[int, int]:
    """Returns where each `${` that is closed again begins and ends."""
    ends: dict[int, int] = {}
    open_brackets: list[int] = []
    for place, sign in enumerate(text):
        if sign == "{":
            open_brackets.append(place)
        elif sign == "}" and open_brackets:
            start = open_brackets.pop()
            if text[start - 1 : start] == "$":
                ends[start - 1] = place + 1
    return ends


def _plain_end(text: str, start: int) -> int:
    """Returns where `$NAME` or `$$` ends; a lone `$` stands for itself."""
    found = PLAIN.match(text, start)
    return found.end() if found else start + 1
