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
    """In which of the known versions a word is a flag: None where it was one in the oldest, or still is in the newest."""

    since: str | None
    until: str | None


class NearCatalog(Record, frozen=True):
    """The catalog to use for a version: `why` says what it stands in for, or why there is none; empty where it is exact."""

    catalog: Catalog | None
    why: str = ""


class Renamed(Record, frozen=True):
    """A flag that goes by another name, how that is known, and whether the old word is still taken."""

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
    """What is different between two versions of an engine, as seen from the earlier one.

    Of `choices` and `words`, before is what was lost and after what was won.
    """

    engine: str
    before: str
    after: str
    added: tuple[Flag, ...]
    removed: tuple[Flag, ...]
    renamed: tuple[Renamed, ...]
    defaults: tuple[Changed, ...]
    choices: tuple[Changed, ...]
    words: tuple[Changed, ...]
    types: tuple[Changed, ...]
    deprecated: tuple[Changed, ...]


class KnownVersions(Record, frozen=True):
    """The versions of an engine of which the flags are known, oldest first."""

    engine: str
    versions: tuple[str, ...]


class KnownFlag(Record, frozen=True):
    """A flag, and the versions since which and until which it is known to exist."""

    flag: Flag
    since: str | None = None
    until: str | None = None


class FlagsView(Record, frozen=True):
    """The flags of one version; `note` says what the version asked for was replaced by."""

    engine: str
    version: str
    source: str
    note: str
    flags: tuple[KnownFlag, ...]
