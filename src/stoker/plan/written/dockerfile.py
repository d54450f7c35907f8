"""Reads Dockerfiles: the image they build on, its variables, and what the image starts."""

from __future__ import annotations

import json
import re
from pathlib import PurePath
from typing import NamedTuple

import msgspec

from stoker.errors import StokerError
from stoker.plan.written.containers import Container, contained, split_command
from stoker.plan.written.interpolation import Interpolation
from stoker.plan.written.unit_file import split_words
from stoker.records import Recipe

INSTRUCTION = re.compile(r"\s*([A-Za-z]+)\s+(.+)", re.DOTALL)
ARGUMENT = re.compile(r"\$\{(\w+)\}|\$(\w+)")
FROM = re.compile(r"(?:--\S+\s+)*(\S+)(?:\s+[Aa][Ss]\s+(\S+))?\s*")


def looks_like(text: str, name: str) -> bool:
    """Tells whether a file is a Dockerfile: by its name, or since its first instruction is FROM or ARG."""
    stem = PurePath(name).name.lower()
    if stem.startswith(("dockerfile", "containerfile")) or stem.endswith(".dockerfile"):
        return True
    first = next((line.strip() for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")), "")
    return re.match(r"FROM\s+\S+(\s+[Aa][Ss]\s+\S+)?$|ARG\s+\w+=", first) is not None


class _Stage(NamedTuple):
    """A stage of the build so far: what it builds on, its variables, and its ENTRYPOINT and CMD."""

    image: str
    line: int
    environment: dict[str, str]
    words: dict[str, tuple[str, ...]]


def read(text: str, name: str) -> tuple[Recipe, ...]:
    """Returns what the image of the last stage starts by itself; raises StokerError where there is no FROM."""
    said: list[str] = []
    stages: dict[str, _Stage] = {}
    arguments: dict[str, str] = {}
    stage: _Stage | None = None
    for line, word, rest in _instructions(text):
        if word == "FROM" and (parts := FROM.fullmatch(rest)):
            stage = _from(parts[1], line, stages, arguments, said)
            stages[parts[2] or str(len(stages))] = stage
        elif word == "ARG":
            arguments |= _variables(rest)
        elif word == "ENV" and stage is not None:
            stage.environment.update(_variables(rest))
        elif word in ("ENTRYPOINT", "CMD") and stage is not None:
            stage.words[word], notes = _words(rest)
            said += notes
    if stage is None:
        raise StokerError(f"{name} has no FROM", next_step="give a Dockerfile, or the command that starts the engine")
    container = Container(stage.image, {}, stage.environment, {})
    made = contained(container, stage.words.get("ENTRYPOINT", ()), stage.words.get("CMD", ()))
    said += ["the file builds an image; how it is started stands elsewhere"] if not made.words else []
    return (msgspec.structs.replace(made, kind="docker", source=name, line=stage.line, unknown=(*said, *made.unknown)),)


def _from(base: str, line: int, stages: dict[str, _Stage], arguments: dict[str, str], said: list[str]) -> _Stage:
    """Returns the stage that begins here; one that builds on another has what that one has."""
    if base in stages:
        before = stages[base]
        return _Stage(before.image, line, dict(before.environment), dict(before.words))
    filled = ARGUMENT.sub(lambda found: arguments.get(found[1] or found[2], found[0]), base)
    return _Stage(Interpolation(said).text(filled) or base, line, {}, {})


def _instructions(text: str) -> list[tuple[int, str, str]]:
    """Returns (line, instruction, rest); lines that end with a backslash go on, comments between them do not end that."""
    found: list[tuple[int, str, str]] = []
    pieces: list[str] = []
    start = 0
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if line.lstrip().startswith("#"):
            continue
        start = start if pieces else number
        stripped = line.rstrip()
        pieces.append(stripped.removesuffix("\\"))
        if not stripped.endswith("\\"):
            if parts := INSTRUCTION.fullmatch(" ".join(pieces)):
                found.append((start, parts[1].upper(), parts[2].strip()))
            pieces = []
    return found


def _variables(rest: str) -> dict[str, str]:
    """Returns the variables of `ENV A=b C=d`, or of the old `ENV A b`."""
    name, blank, value = rest.partition(" ")
    if "=" not in name:
        return {name: value.strip()} if blank else {}
    pairs = [word.partition("=") for word in split_words(rest)]
    return {name: value for name, sign, value in pairs if sign}


def _words(rest: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the words of an ENTRYPOINT or CMD: a JSON list, or a text that a shell would run."""
    try:
        tree = json.loads(rest) if rest.startswith("[") else None
    except (ValueError, RecursionError):
        tree = None
    return (tuple(str(word) for word in tree), ()) if isinstance(tree, list) else split_command(rest)
