"""Finds the engine in a command that is no container: behind prefixes, or in the text of `bash -c`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import msgspec

from stoker.plan.written.docker_options import SUBSTITUTION
from stoker.plan.written.expansion import Value
from stoker.plan.written.flags import is_flag
from stoker.plan.written.prefixes import Stripped, program_name, strip_prefixes
from stoker.plan.written.programs import SHELLS, find_model, find_program
from stoker.plan.written.shell import Command, read_commands
from stoker.records import Recipe

RUNS_TEXT = re.compile(r"-[a-z]*c")
MOST_DEPTH = 4
CONFIG = {"vllm": "--config", "sglang": "--config"}

Find = Callable[[Sequence[str], Mapping[str, str], int], Recipe | None]


def find_engine(words: Sequence[str], environment: Mapping[str, str], depth: int = 0) -> Recipe | None:
    """Returns the launch of an engine that these words are, without a container; None where they are none."""
    stripped = strip_prefixes(words, environment)
    if text_place(stripped.words) is not None:
        return inside_shell(stripped, find_engine, depth)
    program = find_program(stripped.words)
    if program is None:
        return None
    own = stripped.words[program.length :]
    return engine_recipe(program.engine, (*stripped.prefix, *stripped.words[: program.length]), own, stripped)


def engine_recipe(engine: str, program: Sequence[str], own: Sequence[str], stripped: Stripped) -> Recipe:
    """Returns the recipe for an engine's own words."""
    hidden = [word for before, word in pairwise(own) if SUBSTITUTION.fullmatch(word) and not is_flag(before)]
    unread = [f"the flags that `{word}` gives are known only when it runs" for word in hidden]
    unknown = [f"`{word}` may add further flags" for word in own if word in ("$@", "$*", "${@}")]
    unknown += [f"the settings in `{word}` are not seen here" for flag, word in pairwise(own) if flag == CONFIG.get(engine)]
    return Recipe(
        kind="command",
        engine=engine,
        program=tuple(program),
        words=tuple(own),
        model=find_model(engine, own, stripped.environment),
        environment=stripped.environment,
        lost_environment=stripped.lost,
        unknown=(*unknown, *unread),
        unread=tuple(unread),
    )


def text_place(words: Sequence[str]) -> int | None:
    """Returns where the text of `bash -c TEXT` stands, or None where no shell is called so."""
    if not words or program_name(words[0]) not in SHELLS:
        return None
    for place, word in enumerate(words[1:-1], start=2):
        if RUNS_TEXT.fullmatch(word):
            return place
        if not word.startswith("-"):
            return None
    return None


def inside_shell(stripped: Stripped, find: Find, depth: int) -> Recipe | None:
    """Returns the first launch in the text of `bash -c TEXT`; what else stands there stays a part of its program."""
    place = text_place(stripped.words)
    if place is None or depth > MOST_DEPTH:
        return None
    text = stripped.words[place]
    outer = {name: Value((value,)) for name, value in stripped.environment.items()}
    commands = read_commands(text, values=outer)
    for command in commands:
        found = find(command.words, {**stripped.environment, **command.environment}, depth + 1)
        if found is not None:
            lost = {**stripped.lost, **found.lost_environment}
            found = msgspec.structs.replace(found, lost_environment=lost, unknown=(*command.notes, *found.unknown))
            return found if len(commands) == 1 else _with_rest(found, stripped, place, command)
    return None


def _with_rest(found: Recipe, stripped: Stripped, place: int, command: Command) -> Recipe:
    """Keeps what the shell does before an engine that it calls itself: `pip install x && vllm serve`."""
    if found.image is not None:
        said = "the shell's text does more than start this container; that part was not read"
        return msgspec.structs.replace(found, unknown=(*found.unknown, said))
    before = stripped.words[place][: command.start] + shlex.join(found.program)
    return msgspec.structs.replace(found, program=(*stripped.prefix, *stripped.words[:place], before))
