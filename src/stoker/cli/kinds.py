"""Kinds of words that several verbs take."""

from __future__ import annotations

import re

import click

DURATION = re.compile(r"(\d{1,9})([smhdw])")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
MOST_PRIORITY = 100
COUNT = re.compile(r"(\d{1,12})([kKmM]?)")
UNITS = {"": 1, "k": 1000, "K": 1024, "m": 10**6, "M": 1024**2}


def tokens(said: str) -> int:
    """Returns a number of tokens as engines take it: 32768, 32k (thousands) or 32K (times 1,024)."""
    found = COUNT.fullmatch(said)
    if found is None:
        raise click.BadParameter(f"{said!r} is no number of tokens: write 32768, 32k (32,000) or 32K (32,768)")
    return int(found[1]) * UNITS[found[2]]


def seconds(said: str) -> float:
    """Returns a length of time in seconds: 90s, 30m, 12h, 7d, 4w."""
    found = DURATION.fullmatch(said.strip())
    if found is None or int(found[1]) == 0:
        raise click.BadParameter(f"{said!r} is no length of time: write 90s, 30m, 12h, 7d or 4w")
    return float(int(found[1]) * SECONDS[found[2]])


def priority(said: str) -> int:
    """Returns a priority: low, normal, high, or a number from -100 to 100."""
    from stoker.records import PRIORITIES

    if said in PRIORITIES:
        return PRIORITIES[said]
    try:
        number = int(said)
    except ValueError:
        number = MOST_PRIORITY + 1
    if abs(number) > MOST_PRIORITY:
        raise click.BadParameter(f"{said!r} is no priority: write low, normal, high, or a number from -100 to 100")
    return number


def names(said: str) -> tuple[str, ...]:
    """Returns names that commas divide."""
    found = tuple(name.strip() for name in said.split(","))
    if not all(found):
        raise click.BadParameter(f"{said!r} are no names: write a,b")
    return found
