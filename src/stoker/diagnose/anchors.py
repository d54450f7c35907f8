"""Finds text that every match of a pattern holds, so that most of a log can be passed over without trying patterns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

# The standard library's own reader of patterns: one of ours would read some of them wrongly, and then miss their lines.
from re import _parser  # type: ignore[attr-defined]
from typing import Any

LEAST = 4  # shorter runs are in every other line
Node = tuple[Any, Any]


def find_anchors(pattern: str) -> tuple[str, ...]:
    """Returns texts in small letters of which each match holds at least one, whatever its case."""
    return _of_sequence(_parser.parse(pattern)) or ()


def _of_sequence(nodes: Iterable[Node]) -> tuple[str, ...] | None:
    """Of the runs that a sequence holds in any case the longest is the rarest."""
    choices: list[tuple[str, ...]] = []
    run = ""
    for kind, what in [*nodes, (None, None)]:
        if str(kind) == "LITERAL" and chr(what).isascii():
            run += chr(what).lower()
            continue
        choices += [(run,)] if len(run) >= LEAST and not run.isspace() else []
        run = ""
        choices += [inner] if (inner := _of_node(str(kind), what)) else []
    return max(choices, key=lambda words: min(map(len, words)), default=None)


def _of_node(kind: str, what: Any) -> tuple[str, ...] | None:
    if kind == "SUBPATTERN":
        return _of_sequence(what[-1])
    if kind in ("MAX_REPEAT", "MIN_REPEAT"):
        return _of_sequence(what[2]) if what[0] > 0 else None
    if kind == "BRANCH":
        return _of_branches(what[1])
    return None


def _of_branches(branches: Sequence[Iterable[Node]]) -> tuple[str, ...] | None:
    """One of the branches is taken, so each has to have an anchor of its own."""
    found = [_of_sequence(branch) for branch in branches]
    return tuple(word for words in found for word in words or ()) if all(found) else None
