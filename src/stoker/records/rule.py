"""What is known of machines, engines and models: rules with their evidence, and what they find."""

from __future__ import annotations

import datetime
from typing import Annotated, Literal

import msgspec

from stoker.records.base import Record

Severity = Literal["crash", "oom", "wrong-output", "security", "silent", "slow", "harmless"]
Topic = Literal["flag", "environment", "memory", "model-files", "networking", "metrics", "log", "client", "privilege"]
Standing = Literal["measured", "reported", "disputed"]
Level = Literal["forbid", "warn", "note"]
# The stages of an engine's start by neutral names; `connect`: its processes and GPUs find each other.
StageName = Literal[
    "import", "connect", "weights", "compile", "autotune", "warm-up", "graphs", "first token", "gate", "other"
]
Scalar = str | int | float | bool
Test = Scalar | tuple[Scalar, ...]


class Evidence(Record, frozen=True):
    """Who saw it, on which build, when, and how well it stands.

    `measured`: a number or a run that somebody shows; `reported`: said by those who met it; `disputed`: others saw the
    opposite on the same scope. `says` is the figure or the fact itself, in our words.
    """

    source: Annotated[str, msgspec.Meta(min_length=4)]
    build: str
    date: datetime.date
    standing: Standing
    says: str = ""


class Overlay(Record, frozen=True):
    """The sources that have to replace a package of an image: a repository and one commit of it."""

    package: str
    repository: str
    commit: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{40}$")]


class Rule(Record, frozen=True):
    """One thing that is known, where it holds, and what follows from it; see `rules/__init__.py` for the tests' language.

    `when` is the scope and `wrong` the mistake: both have to hold for a finding. `use` and `drop` mend it. `prefer` is what
    a plan sets in this scope where nobody chose otherwise. `signs` are regular expressions over an engine's log. `overlay`
    mends an image that has no newer one. `stages` are the parts of a start that this rule explains where they take long.
    `is_consequence`: its sign says that something ended, and what else is found before it says why. `is_provoked`: it
    tells of a request that was refused, such as Stoker's own probes ask on purpose. `local` is the file of a rule that the
    user wrote; those that ship have none.
    """

    id: Annotated[str, msgspec.Meta(pattern="^[a-z0-9]+(-[a-z0-9]+)*$")]
    title: str
    severity: Severity
    topic: Topic
    cause: str
    fix: str
    evidence: Annotated[tuple[Evidence, ...], msgspec.Meta(min_length=1)]
    review_by: datetime.date
    when: dict[str, Test] = {}  # noqa: RUF012 - msgspec copies it
    wrong: dict[str, Test] = {}  # noqa: RUF012
    use: dict[str, Scalar] = {}  # noqa: RUF012
    drop: tuple[str, ...] = ()
    prefer: dict[str, Scalar] = {}  # noqa: RUF012
    signs: tuple[str, ...] = ()
    stages: tuple[StageName, ...] = ()
    overlay: Overlay | None = None
    contradicts: tuple[str, ...] = ()
    only_warn: bool = False
    is_consequence: bool = False
    is_provoked: bool = False
    local: str = ""

    @property
    def is_disputed(self) -> bool:
        """Whether somebody saw the opposite in the same scope; such a rule warns and never forbids."""
        return any(seen.standing == "disputed" for seen in self.evidence)


class Finding(Record, frozen=True):
    """Something that is wrong, why we think so, and what to do.

    `use` and `drop` are the change that mends it, in the words of a rule: `--flag`, `$VARIABLE`, `docker:option`.
    """

    level: Level
    rule: str
    what: str
    why: str
    fix: str
    where: str = ""
    standing: Standing = "reported"
    severity: Severity = "crash"
    use: dict[str, Scalar] = {}  # noqa: RUF012
    drop: tuple[str, ...] = ()
