"""The logs of `tests/cases/diagnose`: each begins with what is expected of it, in lines of `#! KEY: VALUE`.

`top` is the confidence and the rule of the first finding, or `nothing` where no finding may be more than possible; `then`
names further findings, `possible` those that are no more than that, `not` rules that may not be named, `noise` what is to be
told as harmless, `cause` what a person found before the rules were tried on it and `first` what these told then, `unknown` a
text in lines that nobody can explain, `hidden` a secret, `context` the launch's command.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "cases" / "diagnose"
END = "#! log\n"


class Case(NamedTuple):
    """A log with what is expected of it."""

    name: str
    expected: dict[str, list[str]]
    log: bytes

    @property
    def context(self) -> str | None:
        """The launch's command, where a case has one."""
        return next(iter(self.expected.get("context", [])), None)


def read_cases() -> list[Case]:
    """Returns all cases, by name."""
    return [read_case(file) for file in sorted(FOLDER.glob("*.log"))]


def read_case(file: Path) -> Case:
    """Returns one case."""
    head, _, log = file.read_text(encoding="utf-8").partition(END)
    expected: dict[str, list[str]] = {}
    for line in head.splitlines():
        key, _, value = line.removeprefix("#! ").partition(": ")
        expected.setdefault(key, []).append(value)
    return Case(file.stem, expected, log.encode())
