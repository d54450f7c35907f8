"""Finds a model's shape by its name, or makes one of its size."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import msgspec

from stoker.plan.speed.shape import Shape, usual_shape

FILE = Path(__file__).parent / "data" / "models.toml"
SAME_SIZE = 1.35
SIZE = re.compile(r"(?<![\w.])(?:e)?(\d+(?:\.\d+)?)b(?![a-z])")
ACTIVE = re.compile(r"(?<![\w.])a(\d+(?:\.\d+)?)b(?![a-z])")


@cache
def known_shapes() -> tuple[Shape, ...]:
    """Returns the shapes of published models."""
    return tuple(msgspec.convert(row, Shape) for row in tomllib.loads(FILE.read_text())["model"])


def words_of(name: str) -> frozenset[str]:
    """Returns the words of a name, families apart from their numbers: 'org/Qwen3.6-27B' gives qwen, 3.6 and 27b."""
    spaced = re.sub(r"(?<=[a-z]{2})(?=\d)", " ", name.rsplit("/", 1)[-1].lower())
    return frozenset(re.findall(r"[a-z0-9.]+", spaced))


def find_shape(name: str, total_b: float | None = None, active_b: float | None = None) -> Shape | None:
    """Returns the shape of the model of that name, or the usual one of its size; None where no size is known either."""
    words = words_of(name)
    found = [(len(words_of(known)), shape) for shape in known_shapes() for known in shape.names if words_of(known) <= words]
    if found:
        shape = max(found, key=lambda pair: pair[0])[1]
        if total_b is None or 1 / SAME_SIZE < total_b / shape.total_b < SAME_SIZE:
            return shape
    total_b, active_b = total_b or _size(SIZE, name), active_b or _size(ACTIVE, name)
    return usual_shape(name, total_b, active_b) if total_b else None


def _size(pattern: re.Pattern[str], name: str) -> float | None:
    sizes = [float(size) for size in pattern.findall(re.sub(r"[^a-z0-9.]", " ", name.lower()))]
    return max((size for size in sizes if size > 0), default=None)
