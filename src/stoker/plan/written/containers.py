"""Reads `docker run ... IMAGE ...`, `create` and `exec NAME ...`, and what a container of any file starts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from stoker.plan.written.docker_calls import RUNNERS as RUNNERS
from stoker.plan.written.docker_calls import find_call
from stoker.plan.written.docker_options import read_options
from stoker.plan.written.inside import engine_recipe, find_engine
from stoker.plan.written.prefixes import Stripped, program_name
from stoker.plan.written.programs import SHELLS, engine_in_image, program_of_image
from stoker.records import Recipe

STARTING = frozenset({"run", "create", "exec"})
IDLE = frozenset({"sleep", "tail", "ray", *SHELLS})  # keep a container up, for what is started in it later
COMPOSE_SWITCHES = frozenset({"build", "no-deps", "no-TTY", "quiet-pull", "remove-orphans", "service-ports", "use-aliases"})
COLON = re.compile(r":(?![^{]*\})")
LONGEST_PATHS = 8192  # two of the kernel's longest


class Container(NamedTuple):
    """What is known of a container before its command is looked at."""

    image: str | None
    options: dict[str, tuple[str, ...]]
    environment: dict[str, str]
    lost: dict[str, str]
    unknown: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def find_container(stripped: Stripped) -> Recipe | None:
    """Returns the launch of `docker run`, `create` or `exec`, also compose's where it names a command; else None."""
    call = find_call(stripped.words)
    if call is None or call.verb not in STARTING or program_name(stripped.words[0]) not in RUNNERS:
        return None
    read = read_options(call.words, COMPOSE_SWITCHES if call.is_compose else frozenset())
    runner = (*stripped.prefix, *stripped.words[: call.start])
    subject, command = (read.rest[0] if read.rest else None), read.rest[1:]
    passed, notes = pass_environment(read.options.get("env", ()), stripped.environment)
    notes += tuple(f"the variables in `{file}` are not seen here" for file in read.options.get("env-file", ()))
    is_run = call.verb != "exec" and not call.is_compose
    left = {name: value for name, value in stripped.environment.items() if name not in passed}
    container = Container(
        image=subject if is_run else None,
        options=read.options,
        environment=passed,
        lost={**stripped.lost, **left},
        unknown=(*read.unknown, *notes),
        unread=read.unread,
    )
    found = contained(container, split_entrypoint(read.options.get("entrypoint", ()), ""), command)
    if call.is_compose and found.engine is None:
        return None  # what the service runs by itself stands in its file
    name = (read.options.get("name") or (None,))[-1] if is_run else subject
    return msgspec.structs.replace(found, kind="docker", name=name, program=(*runner, *found.program))


def pass_environment(given: Sequence[str], outer: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Returns the variables of `-e A=b` and `-e A`, and a sentence for each that is set elsewhere."""
    environment: dict[str, str] = {}
    notes: list[str] = []
    for text in given:
        name, sign, value = text.partition("=")
        if not name:
            notes.append(f"`-e {text}` names no variable")
        elif sign:
            environment[name] = value
        elif name in outer:
            environment[name] = outer[name]
        else:
            environment[name] = f"${name}"
            notes.append(f"`{name}` is handed on from where the container is started")
    return environment, tuple(notes)


def split_entrypoint(given: Sequence[str], otherwise: str) -> tuple[str, ...]:
    """Returns the words of an entrypoint; docker takes one word, podman a JSON list as well."""
    text = given[-1] if given else otherwise
    if text.startswith("["):
        return tuple(word.strip(" \"'") for word in text.strip("[]").split(",") if word.strip(" \"'"))
    return (text,) if text else ()


def contained(container: Container, entrypoint: Sequence[str], command: Sequence[str]) -> Recipe:
    """Returns the launch in a container: its command, after the entrypoint given or that of the image."""
    words = (*entrypoint, *command)
    found = find_engine(words, container.environment) or _by_image(container, entrypoint, words)
    lost = {name: value for name, value in container.lost.items() if name not in found.environment}
    return msgspec.structs.replace(
        found,
        image=container.image,
        container=container.options,
        environment={**container.environment, **found.environment},
        lost_environment={**lost, **found.lost_environment},
        mounts=mounts_of(container.options),
        unknown=tuple(dict.fromkeys((*container.unknown, *container.unread, *found.unknown))),
        unread=(*container.unread, *found.unread),
    )


def _by_image(container: Container, entrypoint: Sequence[str], words: Sequence[str]) -> Recipe:
    stripped = Stripped((), tuple(words), container.environment, {})
    image = container.image or ""
    program = program_of_image(image, words) if not entrypoint else None
    if program is not None:
        return engine_recipe(program.engine, words[: program.length], words[program.length :], stripped)
    engine = engine_in_image(image)
    is_hidden = engine is not None and words and program_name(words[0]) not in IDLE
    said = (f"what `{words[0]}` starts in the container is not seen here",) if is_hidden else ()
    return Recipe(
        kind="docker", engine=engine, program=tuple(words), environment=container.environment, unknown=said, unread=said
    )


def mounts_of(options: Mapping[str, Sequence[str]]) -> tuple[tuple[str, str], ...]:
    """Returns (source, target) of all `--volume` and `--mount`."""
    found: list[tuple[str, str]] = []
    for text in (text for text in options.get("volume", ()) if len(text) < LONGEST_PATHS):
        source, *rest = COLON.split(text)
        if rest:
            found.append((source, rest[0]))
    for text in options.get("mount", ()):
        keys = dict(part.partition("=")[::2] for part in text.split(","))
        source = keys.get("source") or keys.get("src") or ""
        target = keys.get("target") or keys.get("destination") or keys.get("dst") or ""
        if source and target:
            found.append((source, target))
    return tuple(found)


def split_command(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Splits a command that was written as one text, and says where its quotes do not pair."""
    try:
        return tuple(shlex.split(text)), ()
    except ValueError as problem:
        return tuple(text.split()), (f"the quotes of the command do not pair ({problem})",)
