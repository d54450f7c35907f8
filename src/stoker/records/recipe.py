"""An engine launch as somebody wrote it down, and what an engine knows of its own flags."""

from __future__ import annotations

from typing import Literal

from stoker.records.base import Record

RecipeKind = Literal["command", "docker", "compose", "systemd", "sudoers", "recipe", "llama-swap"]


class Recipe(Record, frozen=True):
    """One launch that was found in a command line or a file: what would be run, with what, and where it stands.

    `words` are the engine's own words after its program, as written. `environment` reaches the engine;
    `lost_environment` was set where it never does, such as before `docker run`. `container` are docker's long options
    without dashes (`network`, `rm`, `restart`), each with its values, empty for a switch; `unit` are systemd's
    directives (`MemoryMax`). `grants` are the lines of a sudoers file. `unknown` says what could not be understood, and
    `unread` which of that hides a part of a launch: that nothing is found then does not mean that nothing is wrong.
    `beside` are the launches of the same file that still run when this one starts.
    """

    kind: RecipeKind
    name: str | None = None
    engine: str | None = None
    program: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    model: str | None = None
    image: str | None = None
    environment: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it
    lost_environment: dict[str, str] = {}  # noqa: RUF012
    container: dict[str, tuple[str, ...]] = {}  # noqa: RUF012
    unit: dict[str, tuple[str, ...]] = {}  # noqa: RUF012
    mounts: tuple[tuple[str, str], ...] = ()
    grants: tuple[str, ...] = ()
    source: str = ""
    line: int = 0
    unknown: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    beside: tuple[Recipe, ...] = ()


FlagType = Literal["text", "int", "count", "float", "switch", "json", "unknown"]
Spelling = Literal["equals", "underscores", "prefixes", "dotted"]


class Flag(Record, frozen=True):
    """One option of an engine's command line.

    `name` is the long one with its dashes, `--attention-backend`; `aliases` mean the same and `negated` the opposite of
    it. It takes `choices` alone where there are any; `named` are values that it tells of while taking others too, such
    as those that a plug-in adds. `default` is None where there is none or it is worked out at start; lists and objects
    are written as JSON. A `count` may be written `8k` or `auto`. `many` means that several words may follow, `optional`
    that none need to. `deprecated` is empty, or says what to write instead as far as the engine tells.
    """

    name: str
    type: FlagType = "text"
    aliases: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    default: str | int | float | bool | None = None
    many: bool = False
    deprecated: str = ""
    negated: tuple[str, ...] = ()
    optional: bool = False
    named: tuple[str, ...] = ()


class Catalog(Record, frozen=True):
    """All options of one exact version of an engine, and where they were read.

    `spellings` are what its parser takes besides the exact words: `--option=value`, underscores for dashes, a prefix that
    only one long option has, or `--option.key` for one key of a JSON object. `gone` are words that it knows only to refuse
    them, each with the flag to use instead where it names one.
    """

    engine: str
    version: str
    source: str
    flags: tuple[Flag, ...]
    spellings: tuple[Spelling, ...] = ()
    gone: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it
