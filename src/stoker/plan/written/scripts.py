"""Reads shell scripts: every command in them that starts an engine."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import msgspec

from stoker.errors import StokerError
from stoker.plan.written.prefixes import program_name
from stoker.plan.written.programs import SHELLS
from stoker.plan.written.restarts import is_restart
from stoker.plan.written.shell import Command, read_commands
from stoker.plan.written.together import Running
from stoker.plan.written.unread import names_engine
from stoker.plan.written.words import recipe_of
from stoker.records import Recipe

MOST_LINES = 8  # that are told of those which were not read


class _Found(NamedTuple):
    """The launches of a script with their commands, and sentences on the lines that seem to be some and were not read."""

    launches: list[tuple[Command, Recipe]]
    unread: tuple[str, ...]


def read(text: str, name: str) -> tuple[Recipe, ...]:
    """Returns the launches of a script in the order of its lines; raises StokerError where it has none.

    A container that opens a shell and the engine that is called after it are one launch: it is typed in that shell.
    Containers without a known engine are left out where there is an engine; what restarts containers comes last.
    """
    found = _find(read_commands(text), name)
    if not found.launches:
        raise StokerError(
            f"{name} starts no engine that is known here",
            why="; ".join(found.unread),
            next_step="give the file that holds the launch",
        )
    joined = _joined(found.launches)
    engines = [recipe for recipe in joined if recipe.engine is not None]
    others = [recipe for recipe in joined if recipe.engine is None and not is_restart(recipe)]
    known = {recipe.name for recipe in others if recipe.name}
    restarts = [recipe for recipe in joined if is_restart(recipe) and recipe.name not in known]
    first, *rest = [*(engines or others), *restarts]
    return (_with_unread(first, found.unread), *rest)


def _find(commands: list[Command], name: str) -> _Found:
    running = Running()
    launches: list[tuple[Command, Recipe]] = []
    unread: list[str] = []
    for command in commands:
        recipe = _read_command(command, name)
        if recipe is not None:
            launches.append((command, running.start(command, recipe)))
            continue
        running.stop(command)
        if names_engine(command.words):
            said = " ".join(command.words)
            unread.append(f"line {command.line} seems to start an engine and was not read: `{said[:80]}`")
    return _Found(launches, tuple(unread[:MOST_LINES]))


def _with_unread(recipe: Recipe, unread: tuple[str, ...]) -> Recipe:
    return msgspec.structs.replace(recipe, unknown=(*recipe.unknown, *unread), unread=(*recipe.unread, *unread))


def _read_command(command: Command, name: str) -> Recipe | None:
    found = recipe_of(command.words, source=name, line=command.line, environment=command.environment)
    if found is None:
        return None
    # An exported variable that the command's words name was meant for them, and not for the container.
    meant = command.used - command.assigned.keys()
    lost = {variable: value for variable, value in found.lost_environment.items() if variable not in meant}
    notes = [note for variable, value in command.exported.items() if variable in found.environment for note in value.notes]
    unknown = tuple(dict.fromkeys((*command.notes, *notes, *found.unknown)))
    return msgspec.structs.replace(found, lost_environment=lost, unknown=unknown)


def _joined(found: list[tuple[Command, Recipe]]) -> list[Recipe]:
    joined: list[Recipe] = []
    outside: Collection[str] = ()
    for command, recipe in found:
        if joined and recipe.kind == "command" and _opens_shell(joined[-1]):
            joined[-1] = _typed_inside(joined[-1], recipe, outside)
        else:
            joined.append(recipe)
            outside = command.environment
    return joined


def _opens_shell(recipe: Recipe) -> bool:
    if recipe.image is None or recipe.words or "detach" in recipe.container:
        return False
    last = program_name(recipe.program[-1])
    return last in SHELLS or (last == "run" and "interactive" in recipe.container)


def _typed_inside(container: Recipe, engine: Recipe, outside: Collection[str]) -> Recipe:
    """Returns the launch of an engine in a container's shell; variables that were set `outside` do not reach it."""
    runner = container.program[:-1] if program_name(container.program[-1]) in SHELLS else container.program
    inside = {name: value for name, value in engine.environment.items() if name not in outside}
    said = "the engine is started by hand in the container's shell: the two commands were read as one launch"
    return msgspec.structs.replace(
        container,
        engine=engine.engine,
        program=(*runner, *engine.program),
        words=engine.words,
        model=engine.model,
        line=engine.line,
        environment={**inside, **container.environment},
        unknown=(*container.unknown, *engine.unknown, said),
    )
