"""Kinds of words that several verbs take."""

from __future__ import annotations

import re

import click

COUNT = re.compile(r"(\d{1,12})([kKmM]?)")
UNITS = {"": 1, "k": 1000, "K": 1024, "m": 10**6, "M": 1024**2}


def tokens(said: str) -> int:
    """Returns a number of tokens as engines take it: 32768, 32k (thousands) or 32K (times 1,024)."""
    found = COUNT.fullmatch(said)
    if found is None:
        raise click.BadParameter(f"{said!r} is no number of tokens: write 32768, 32k (32,000) or 32K (32,768)")
    return int(found[1]) * UNITS[found[2]]
