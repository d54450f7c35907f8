"""Makes a changed wish of a finding: the fix as `stoker.toml` would say it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from stoker.engines import find
from stoker.errors import Refused
from stoker.records import Cause, Diagnosis, Scalar, SettingValue, Wish

FIELDS = ("context", "parallel", "memory_share")  # what a wish says by names of its own
COMMAND = "command"


def choose_cause(told: Diagnosis) -> Cause:
    """Returns the cause to mend: the first finding; raises Refused where it is not sure, or no setting mends it."""
    if not told.findings:
        raise Refused(
            f"there is nothing to apply: no rule explains what is in the log of {told.source}",
            next_step=f"`stoker diagnose {told.source}` shows the most telling lines, and what would help",
        )
    cause = told.findings[0]
    if cause.confidence == "possible":
        raise Refused(
            f"{cause.title} is only possible, and nothing is changed on a guess",
            why=f"what yours is, is unknown: {', '.join(cause.hangs_on)}" if cause.hangs_on else cause.cause,
            next_step=cause.fix,
            rule=cause.rule,
        )
    if not (cause.use or cause.drop):
        raise Refused(
            f"no setting of the service mends this: {cause.title}", why=cause.cause, next_step=cause.fix, rule=cause.rule
        )
    return cause


def changed_wish(wish: Wish, cause: Cause, engine: str) -> Wish:
    """Returns the wish as it should have been; raises Refused where the fix lies outside of it."""
    outside = [name for name in (*cause.use, *cause.drop) if not name.startswith(("--", "$"))]
    if outside or engine == COMMAND:
        said = ", ".join(outside) or "its program is a command of yours"
        raise Refused(
            f"what mends this is not said by the service's table: {said}",
            why=cause.cause, next_step=cause.fix, rule=cause.rule,
        )  # fmt: skip
    spelling = find(engine).spelling
    fields = {flag: name for name in FIELDS for flag in spelling.get(name, ())}
    changes = _Changes(wish, fields)
    for name in cause.drop:
        changes.drop(name)
    for name, value in cause.use.items():
        changes.use(name, value)
    if changes.missed and not cause.use:
        raise Refused(
            f"{', '.join(changes.missed)} is not among the flags of {wish.name}, so it cannot be left out there",
            why="it comes from the plan, from the image or from another file", next_step=cause.fix, rule=cause.rule,
        )  # fmt: skip
    return changes.wish()


class _Changes:
    """A wish's own fields, flags and variables while they are changed."""

    def __init__(self, wish: Wish, fields: Mapping[str, str]) -> None:
        self._wish = wish
        self._fields = fields
        self._own: dict[str, Any] = {}
        self._flags: dict[str, SettingValue] = dict(wish.flags)
        self._environment = dict(wish.environment)
        self.missed: list[str] = []

    def drop(self, name: str) -> None:
        """Takes a flag or a variable out."""
        written = [one for one in self._flags if _flag(one) == name]
        if name.startswith("$") and self._environment.pop(name[1:], None) is not None:
            return
        for one in written:
            del self._flags[one]
        if not written and name in self._fields and getattr(self._wish, self._fields[name]) is not None:
            self._own[self._fields[name]] = None
        elif not written:
            self.missed.append(name)

    def use(self, name: str, value: Scalar) -> None:
        """Sets a flag or a variable, where the wish has a name of its own for it by that."""
        if name.startswith("$"):
            self._environment[name[1:]] = str(value)
        elif name in self._fields and not any(_flag(one) == name for one in self._flags):
            self._own[self._fields[name]] = value
        else:
            written = next((one for one in self._flags if _flag(one) == name), name.removeprefix("--"))
            self._flags[written] = value

    def wish(self) -> Wish:
        """Returns the wish with everything that was changed."""
        return msgspec.structs.replace(self._wish, **self._own, flags=self._flags, environment=self._environment)


def _flag(written: str) -> str:
    return f"--{written.strip().lstrip('-').replace('_', '-')}"
