"""Reads systemd units and podman quadlets: what they start, and the directives around it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath

import msgspec

from stoker.errors import StokerError
from stoker.plan.written.containers import Container, contained, pass_environment
from stoker.plan.written.quadlet import options_of
from stoker.plan.written.unit_file import Directive, collected, read_directives, specifiers, split_words, without_doubled
from stoker.plan.written.words import recipe_of
from stoker.records import Recipe

SECTIONS = re.compile(r"^\[(Unit|Service|Container|Install)\][ \t]*$", re.MULTILINE)
VARIABLE = re.compile(r"\$\$|\$\{(\w+)\}|\$(\w+)")
HOLE = re.compile(r"__[A-Z][A-Z0-9_]*__|@[A-Z][A-Z0-9_]+@")
MOST_STARTS = 50
MARKS = "@-:+!|"  # what may stand before the program of ExecStart


def looks_like(text: str) -> bool:
    """Tells whether a text is a unit or a quadlet."""
    return SECTIONS.search(text) is not None


def read(text: str, name: str) -> tuple[Recipe, ...]:
    """Returns the launch of a unit: one recipe, or one for each of several `ExecStart`; without an engine the unit alone."""
    directives = list(read_directives(text))
    if not directives:
        raise StokerError(f"{name} has no directives", next_step="give a systemd unit")
    unit = collected(one for one in directives if one.section != "Container")
    container = collected(one for one in directives if one.section == "Container")
    stem = PurePath(name).name.split(".")[0]
    if container:
        lines = [one.line for one in directives if one.section == "Container"]
        return (_read_quadlet(container, unit, name, stem, lines[0]),)
    count = min(len(unit.get("ExecStart", ())), MOST_STARTS)
    starts = [one for one in directives if one.name == "ExecStart" and one.value][-count:] if count else []
    return tuple(_read_start(one, unit, name, stem) for one in starts) or (_unit_only(unit, name, stem, directives[0].line),)


def _read_start(start: Directive, unit: Mapping[str, tuple[str, ...]], source: str, stem: str) -> Recipe:
    environment = _environment(unit)
    written = split_words(start.value.lstrip(MARKS))
    words, unset = _filled([without_doubled(word) for word in written], environment)
    found = recipe_of(words, kind="systemd", source=source, line=start.line, environment=environment)
    notes = [*unset, *_said_of(unit, start.value)]
    if found is None:
        program = " ".join(words[:1])
        notes.append(f"`{program}` starts the engine, if at all: what it runs is not in the unit")
        found = Recipe(kind="systemd", program=words[:1], words=words[1:], environment=environment)
    named = {name[1] or name[2] for name in VARIABLE.finditer(start.value)}  # meant for the words, not for a container
    lost = {name: value for name, value in found.lost_environment.items() if name not in named}
    return msgspec.structs.replace(
        found, name=stem, source=source, line=start.line, unit=dict(unit), lost_environment=lost,
        unknown=tuple(dict.fromkeys((*found.unknown, *notes))),
    )  # fmt: skip


def _unit_only(unit: Mapping[str, tuple[str, ...]], source: str, stem: str, line: int) -> Recipe:
    return Recipe(
        kind="systemd", name=stem, unit=dict(unit), source=source, line=line, unknown=("the unit starts no program",)
    )


def _environment(unit: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Returns the variables of `Environment=`, whose values are quoted like words."""
    said = [word for value in unit.get("Environment", ()) for word in split_words(value)]
    return {name: without_doubled(value) for name, sign, value in (word.partition("=") for word in said) if sign and name}


def _filled(words: Sequence[str], environment: Mapping[str, str]) -> tuple[tuple[str, ...], list[str]]:
    """Fills in `$NAME` and `${NAME}` as systemd does: a word that is `$NAME` alone may become several words or none."""
    filled: list[str] = []
    unset: list[str] = []
    for word in words:
        alone = VARIABLE.fullmatch(word)
        if alone and alone[2] and alone[2] in environment:
            filled += split_words(environment[alone[2]])
        elif " " in word:  # the text of `bash -c`: systemd's `$$` is one sign there, the rest is the shell's
            filled.append(word.replace("$$", "$"))
        else:
            unset += [found[0] for found in VARIABLE.finditer(word) if not _value(found, environment)]
            filled.append(VARIABLE.sub(lambda found: _value(found, environment) or found[0], word))
    return tuple(filled), [f"`{name}` is not set in the unit" for name in unset]


def _value(found: re.Match[str], environment: Mapping[str, str]) -> str | None:
    return "$" if found[0] == "$$" else environment.get(found[1] or found[2])


def _said_of(unit: Mapping[str, tuple[str, ...]], start: str) -> list[str]:
    """Returns what of a unit is settled elsewhere: files of variables, specifiers, and the holes of a template."""
    notes = [f"the variables in `{file.lstrip('-')}` are not seen here" for file in unit.get("EnvironmentFile", ())]
    notes += [f"`%{sign}` is filled in by systemd" for sign in specifiers(start)]
    holes = dict.fromkeys(HOLE.findall(start))
    return notes + [f"`{hole}` is filled in when the unit is made of its template" for hole in holes]


def _read_quadlet(
    keys: Mapping[str, tuple[str, ...]], unit: Mapping[str, tuple[str, ...]], source: str, stem: str, line: int
) -> Recipe:
    options, said = options_of(keys)
    environment, notes = pass_environment([*_pairs(keys), *options.get("env", ())], {})
    image = (keys.get("Image") or (None,))[-1]
    command = split_words((keys.get("Exec") or ("",))[-1])
    entrypoint = split_words((keys.get("Entrypoint") or ("",))[-1])
    if entrypoint:
        options["entrypoint"] = entrypoint[:1]
    found = contained(Container(image, options, environment, {}), entrypoint, [without_doubled(word) for word in command])
    settled = _said_of({"EnvironmentFile": keys.get("EnvironmentFile", ())}, " ".join(keys.get("Exec", ())))
    unknown = tuple(dict.fromkeys((*said, *notes, *found.unknown, *settled)))
    return msgspec.structs.replace(
        found, kind="systemd", name=stem, source=source, line=line, unit=dict(unit), unknown=unknown
    )


def _pairs(keys: Mapping[str, tuple[str, ...]]) -> list[str]:
    return [f"{name}={value}" for name, value in _environment(keys).items()]
