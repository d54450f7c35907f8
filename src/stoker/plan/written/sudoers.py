"""Reads sudoers files: who may run what, one line for each command, with the aliases filled in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import PurePath
from typing import NamedTuple

from stoker.errors import StokerError
from stoker.records import Recipe

TAGS = (
    "NOPASSWD|PASSWD|NOEXEC|EXEC|SETENV|NOSETENV|LOG_INPUT|NOLOG_INPUT|LOG_OUTPUT|NOLOG_OUTPUT|MAIL|NOMAIL|FOLLOW|NOFOLLOW"
)
USER = r"(?:[^\s\\=,]|\\.)+"
GRANT = re.compile(rf"(?P<who>{USER}(?:\s*,\s*{USER})*)\s+(?P<host>[^\s=]+)\s*=\s*(?P<commands>.+)", re.DOTALL)
ALIAS = re.compile(r"Cmnd_Alias\s+(.+)", re.DOTALL)
OTHER_ALIAS = re.compile(r"(User|Runas|Host|Cmd)_Alias\s")
# `export A=/x` has the shape of a grant as well, so that a host named ALL, brackets or a tag has to be there.
LOOKS_LIKE = re.compile(
    rf"^[ \t]*(?:[%+\w\\.-]+[ \t]+(?:ALL[ \t]*=|[\w.-]+[ \t]*=[ \t]*(?:\([^)\n]*\)[ \t]*(?:{TAGS}|/)|(?:{TAGS})[ \t]*:))"
    r"|Cmnd_Alias[ \t])",
    re.MULTILINE,
)
BEFORE = re.compile(rf"\s*(?P<runas>\([^)]*\))?\s*(?P<tags>(?:(?:{TAGS})\s*:\s*)*)(?P<command>.*)", re.DOTALL)
INCLUDES = re.compile(r"[@#]include(dir)?\s")
MOST_GRANTS = 2_000
MOST_ROUNDS = 8


class _Line(NamedTuple):
    text: str
    number: int


def looks_like(text: str) -> bool:
    """Tells whether a text grants commands as sudoers files do."""
    return LOOKS_LIKE.search(text) is not None


def read(text: str, name: str) -> tuple[Recipe, ...]:
    """Returns one recipe that holds all grants, a line for each command; raises StokerError where there are none."""
    lines = list(_lines(text))
    aliases = dict(_aliases(lines))
    grants: list[str] = []
    unknown: list[str] = []
    granting: list[int] = []
    for line in lines:
        if found := _grant(line):
            granting.append(line.number)
            grants += islice(_grants(found, aliases), MOST_GRANTS - len(grants))
        elif said := _said(line):
            unknown.append(f"line {line.number} {said}")
    if not grants:
        raise StokerError(f"{name} grants no command", next_step="give a sudoers file")
    if len(grants) >= MOST_GRANTS:
        unknown.append(f"only the first {MOST_GRANTS:,} grants were read")
    return (
        Recipe(
            kind="sudoers",
            name=PurePath(name).name,
            grants=tuple(grants),
            source=name,
            line=granting[0],
            unknown=tuple(unknown),
        ),
    )


def _grant(line: _Line) -> re.Match[str] | None:
    is_other = line.text.startswith("Defaults") or ALIAS.match(line.text) or OTHER_ALIAS.match(line.text)
    return None if is_other or INCLUDES.match(line.text) else GRANT.fullmatch(line.text)


def _said(line: _Line) -> str:
    """Returns what a line that grants nothing leaves open."""
    if INCLUDES.match(line.text):
        return "includes other files, which are not seen here"
    if OTHER_ALIAS.match(line.text):
        return "names a group of users or hosts, which was not filled in"
    return "" if line.text.startswith("Defaults") or ALIAS.match(line.text) else "was not understood"


def _lines(text: str) -> Iterator[_Line]:
    """Returns whole lines without comments; `#1000` is a user and `#include` an order, everything else after `#` is not."""
    pieces: list[str] = []
    start = 0
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        start = start if pieces else number
        is_continued = line.endswith("\\") and not line.lstrip().startswith("#")
        pieces.append(line[:-1] if is_continued else line)
        if not is_continued:
            whole = re.sub(r"(?<![\\\w])#(?!\d+\s|include).*", "", " ".join(pieces)).strip()
            pieces = []
            if whole:
                yield _Line(" ".join(whole.split()), start)


def _aliases(lines: list[_Line]) -> Iterator[tuple[str, list[str]]]:
    for line in lines:
        if found := ALIAS.fullmatch(line.text):
            for definition in found[1].split(" : "):
                name, _, commands = definition.partition("=")
                yield name.strip(), _split(commands)


def _split(commands: str) -> list[str]:
    return [command.strip() for command in re.split(r"(?<!\\),", commands) if command.strip()]


def _grants(found: re.Match[str], aliases: Mapping[str, list[str]]) -> Iterator[str]:
    """Returns a line for each command; who it runs as and its tags hold for those that follow, as sudo reads it."""
    runas, tags = "", ""
    for command in _split(_outside_brackets(found["commands"])):
        parts = BEFORE.fullmatch(command)
        if parts is None:
            continue
        runas = parts["runas"] or runas
        tags = " ".join(parts["tags"].split()) or tags
        for word in _expanded(parts["command"].replace("\0", ","), aliases):
            yield " ".join(
                part for part in (f"{found['who']} {found['host']}={runas.replace(chr(0), ',')}", tags, word) if part
            )


def _outside_brackets(text: str) -> str:
    """Hides the commas of `(root, www)`, which part no commands."""
    return re.sub(r"\([^)]*\)", lambda found: found[0].replace(",", "\0"), text)


def _expanded(command: str, aliases: Mapping[str, list[str]]) -> list[str]:
    """Returns the commands of an alias, also of aliases in it; `!` before it is kept before each."""
    words = [command]
    for _ in range(MOST_ROUNDS):
        expanded = list(islice((one for word in words for one in _once(word, aliases)), MOST_GRANTS))
        if expanded == words:
            break
        words = expanded
    return words


def _once(command: str, aliases: Mapping[str, list[str]]) -> Iterator[str]:
    sign = "!" if command.startswith("!") else ""
    name = command.lstrip("! ")
    yield from (f"{sign}{one}" for one in aliases[name]) if name in aliases else (command,)
