"""Joins what a recipe says beside its command (image, environment, container) with the launch that the command makes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from stoker.errors import StokerError
from stoker.plan.written import scripts
from stoker.plan.written.shell import read_commands
from stoker.plan.written.words import recipe_of
from stoker.records import Recipe, RecipeKind


class Start(NamedTuple):
    """Where a recipe's command stands, and what the recipe says beside it."""

    name: str
    source: str
    line: int
    kind: RecipeKind = "recipe"
    model: str | None = None
    image: str | None = None
    environment: dict[str, str] = {}  # noqa: RUF012 - nobody changes it
    container: dict[str, tuple[str, ...]] = {}  # noqa: RUF012


def read_text(start: Start, command: str, said: Iterable[str]) -> Recipe:
    """Returns the launch of a command in shell text: of several the first that starts an engine."""
    try:
        found = scripts.read(command, start.source)
    except StokerError:  # the recipe is one all the same, and is told as far as it is known
        found = ()
    recipe = next((one for one in found if one.engine and (one.words or one.program)), None)
    if recipe is not None:
        return _joined(start, recipe, said)
    commands = read_commands(command)
    return _without_engine(start, commands[-1].words if commands else (), said)


def read_words(start: Start, words: tuple[str, ...], said: Iterable[str]) -> Recipe:
    """Returns the launch of a command whose words are known, and which is started with the environment."""
    recipe = recipe_of(words, kind=start.kind, source=start.source, line=start.line, environment=start.environment)
    if recipe is None or recipe.engine is None:
        return _without_engine(start, words, said)
    return _joined(start._replace(environment={}), recipe, said)  # `docker run` hands none of it on


def _joined(start: Start, recipe: Recipe, said: Iterable[str]) -> Recipe:
    return msgspec.structs.replace(
        recipe,
        kind=start.kind,
        name=start.name,
        source=start.source,
        line=start.line,
        model=recipe.model or start.model,
        image=recipe.image or start.image,
        environment={**start.environment, **recipe.environment},
        container={**start.container, **recipe.container},
        unknown=tuple(dict.fromkeys((*recipe.unknown, *said))),
    )


def _without_engine(start: Start, words: tuple[str, ...], said: Iterable[str]) -> Recipe:
    why = f"`{words[0][:80]}` is no engine that Stoker starts" if words else "its command starts nothing"
    return Recipe(
        kind=start.kind,
        name=start.name,
        program=words[:1],
        words=words[1:],
        model=start.model,
        image=start.image,
        environment=start.environment,
        container=start.container,
        source=start.source,
        line=start.line,
        unknown=tuple(dict.fromkeys((why, *said))),
    )
