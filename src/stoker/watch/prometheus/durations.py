"""Lengths of time in PromQL, made shorter or longer all together. Pure."""

from __future__ import annotations

import re

MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
LENGTH = r"(\d+)(ms|[smhdw])"
# A window, a window with its step, an offset.
PLACES = re.compile(rf"(?<=\[){LENGTH}(?=[\]:])|(?<=:){LENGTH}(?=\])|(?<=offset ){LENGTH}\b")


def scale_durations(expression: str, scale: float) -> str:
    """Returns an expression whose windows, steps and offsets are so many times as long; 1 leaves it as it is."""
    if scale == 1:
        return expression

    def scaled(found: re.Match[str]) -> str:
        amount, unit = (part for part in found.groups() if part is not None)
        return say_duration(int(amount) * MS[unit] / 1_000 * scale)

    return PLACES.sub(scaled, expression)


def say_duration(seconds: float) -> str:
    """Returns a length of time as Prometheus reads it, in the largest unit that says it whole: 15m, 90s, 250ms."""
    amount = max(0, round(seconds * 1_000))
    if amount == 0:
        return "0s"
    unit = next(unit for unit in ("d", "h", "m", "s", "ms") if amount % MS[unit] == 0)
    return f"{amount // MS[unit]}{unit}"
