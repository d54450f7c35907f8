"""What differs between two subjects, or two runs, besides what was measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from stoker.records import BenchRun, BenchSubject, Difference

# In the order in which they explain most.
FACTS = {
    "box": "box", "machine": "machine", "model": "model", "model_revision": "revision", "engine": "engine",
    "engine_version": "engine's version", "image_digest": "image", "plan_id": "plan", "service": "service", "url": "address",
}  # fmt: skip


def differences_of_subjects(a: BenchSubject, b: BenchSubject) -> tuple[Difference, ...]:
    """Returns what differs, flags word by word; what only one of them tells is told too."""
    told = [Difference(words, getattr(a, name), getattr(b, name)) for name, words in FACTS.items()]
    return tuple(one for one in (*told, *_flags(a.flags, b.flags)) if one.a != one.b)


def _flags(a: Sequence[str] | None, b: Sequence[str] | None) -> list[Difference]:
    if a is None or b is None:
        return [Difference("flags", _joined(a), _joined(b))]
    only_a, only_b = (Counter(_pairs(one)) - Counter(_pairs(other)) for one, other in ((a, b), (b, a)))
    names = dict.fromkeys(flag for flag, _ in (*only_a.elements(), *only_b.elements()))
    return [Difference(name, _values(only_a, name), _values(only_b, name)) for name in names]


def _joined(flags: Sequence[str] | None) -> str | None:
    return None if flags is None else " ".join(flags)


def _pairs(flags: Sequence[str]) -> list[tuple[str, str]]:
    """Returns each flag with its values as one text; words before the first flag stand alone."""
    pairs: list[tuple[str, str]] = []
    for word in flags:
        if word.startswith("-") and not _is_number(word):
            name, is_joined, value = word.partition("=")
            pairs.append((name, value if is_joined else ""))
        elif pairs and pairs[-1][0].startswith("-"):
            name, value = pairs.pop()
            pairs.append((name, f"{value} {word}".strip()))
        else:
            pairs.append((word, ""))
    return pairs


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _values(found: Counter[tuple[str, str]], name: str) -> str:
    """Returns a flag's values, 'set' where it takes none, and 'not set' where it is not there."""
    values = [value or "set" for flag, value in found.elements() if flag == name]
    return ", ".join(values) or "not set"


def differences_of_runs(a: BenchRun, b: BenchRun) -> tuple[Difference, ...]:
    """Returns what differs between two runs, the tools that measured them too."""
    tools = Difference("measured by", f"{a.tool} {a.tool_version}".strip(), f"{b.tool} {b.tool_version}".strip())
    return tuple(one for one in (*differences_of_subjects(a.subject, b.subject), tools) if one.a != one.b)
