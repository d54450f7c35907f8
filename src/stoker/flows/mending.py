"""The mended command of a launch as text: what it replaces, what is left to do by hand, and the words themselves."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from stoker.errors import StokerError
from stoker.plan.lint import place_of
from stoker.plan.written.mend import mended
from stoker.plan.written.quoting import open_variables, say_command, say_comments
from stoker.plan.written.read import read_command
from stoker.records import Catalog, Finding, Recipe

# The kinds of launch whose file is shell text; all others are read by programs of their own.
FROM_SHELLS = ("command", "docker")
TOLD = re.compile(r"`(\$[^`]+)`")
WORDS = {"forbid": "forbidden", "warn": "a warning"}
Find = Callable[[Recipe], tuple[Finding, ...]]


def mend_text(
    recipe: Recipe, findings: Sequence[Finding], catalog: Catalog | None, in_script: frozenset[str], find: Find
) -> str:
    """Returns the command with everything mended that can be, below comments on what it replaces and what is left."""
    words = mended(recipe, findings, catalog)
    left = find(_read_again(recipe, words))
    left_open = in_script if recipe.kind in FROM_SHELLS else open_variables(recipe.unknown, recipe.kind)
    command = say_command(words, left_open)
    said = [*_replaced(recipe), *_closed(recipe, command, left_open), *_left(left)]
    return "\n".join([*say_comments(said), command])


def _read_again(recipe: Recipe, words: tuple[str, ...]) -> Recipe:
    """The mended launch as its words say it; what is no part of them, a unit's directives among it, is as it was."""
    try:
        [found] = read_command(words)
    except StokerError:
        return recipe
    lost = {name: value for name, value in recipe.lost_environment.items() if name not in found.environment}
    return msgspec.structs.replace(
        found, unit=recipe.unit, grants=recipe.grants, lost_environment=lost, beside=recipe.beside, unread=recipe.unread,
        engine=recipe.engine, model=found.model or recipe.model, source=recipe.source, line=recipe.line,
    )  # fmt: skip


def _replaced(recipe: Recipe) -> list[str]:
    named = {"compose": f"the service {recipe.name}", "systemd": "ExecStart"}.get(recipe.kind, str(recipe.name))
    if recipe.source.endswith(".container"):
        named = "Exec and the options"
    return [] if recipe.kind in FROM_SHELLS else [f"This does what {named} of {place_of(recipe)} should do."]


def _closed(recipe: Recipe, command: str, left_open: frozenset[str]) -> list[str]:
    """What the launch leaves to a shell, and is plain text in the command, since nobody knows whether it should be open."""
    told = [found[1] for sentence in recipe.unknown if (found := TOLD.search(sentence))]
    shown = [text for text in told if text not in left_open and text in command]
    return [f"Put in by hand what {text} stands for: it is plain text here." for text in dict.fromkeys(shown)]


def _left(findings: Sequence[Finding]) -> list[str]:
    left = [one for one in findings if one.level != "note"]
    return [f"Not mended, {WORDS[one.level]}: {one.what}. {one.fix} - rule {one.rule}" for one in left]
