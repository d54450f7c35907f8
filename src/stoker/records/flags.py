"""What is found out about an engine's flags: which one a word means, which was meant, and what changed between versions."""

from __future__ import annotations

from typing import Literal

from stoker.records.base import Record
from stoker.records.recipe import Catalog, Flag

HowFound = Literal["name", "alias", "negated", "underscores", "prefix", "dotted", "attached"]


class FlagMatch(Record, frozen=True):
    """The flag that a word of a command line means, how it was recognised, and the value that is part of the word.

    `negated` is a switch's opposite; `dotted` sets one key of an object, and `key` says which.
    """

    flag: Flag
    how: HowFound
    value: str | None = None
    key: str = ""


class Suggestion(Record, frozen=True):
    """The word that was probably meant, and why that is thought."""

    word: str
    because: str


class Lifetime(Record, frozen=True):
    """In which of the known versions a word is a flag: None where it already was, or still is, at the end of what is known."""

    since: str | None
    until: str | None


class NearCatalog(Record, frozen=True):
    """The catalog to use for a version: `why` says what it stands in for, or why there is none; empty where it is exact."""

    catalog: Catalog | None
    why: str = ""


class Renamed(Record, frozen=True):
    """A flag that goes by another name; `evidence` says how that is known, `old_works` whether the old word is still taken."""

    before: str
    after: str
    evidence: str
    old_works: bool = False


class Changed(Record, frozen=True):
    """One property of a flag that is another in the later version."""

    name: str
    before: str
    after: str


class CatalogChanges(Record, frozen=True):
    """What is different between two versions of an engine, as seen from the earlier one."""

    engine: str
    before: str
    after: str
    added: tuple[Flag, ...]
    removed: tuple[Flag, ...]
    renamed: tuple[Renamed, ...]
    defaults: tuple[Changed, ...]
    choices: tuple[Changed, ...]
    types: tuple[Changed, ...]
    deprecated: tuple[Changed, ...]
