"""Scripts, compose files, units and sudoers, each a file that says in its first lines what a person would see in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stoker.plan.written.flags import flags_of
from stoker.plan.written.mend import mended
from stoker.plan.written.quoting import say_command
from stoker.plan.written.read import read_command, read_written
from stoker.plan.written.shell import read_commands
from stoker.records import Recipe

CASES = Path(__file__).parent / "cases"
MARK = "#: "
FOLDERS = ("scripts", "compose", "systemd", "sudoers", "dockerfiles")
FILES = [file for folder in FOLDERS for file in sorted((CASES / folder).iterdir())]
Check = Callable[[Recipe, str], bool]


def split(text: str) -> tuple[str, str]:
    name, _, value = text.partition(" ")
    return name, value


def has_flag(recipe: Recipe, text: str) -> bool:
    name, value = split(text)
    return " ".join(flags_of(recipe.words).get(name, ("absent",))) == value


def has_directive(recipe: Recipe, text: str) -> bool:
    name, value = split(text)
    return recipe.unit.get(name) == (value,)


def has_option(recipe: Recipe, text: str) -> bool:
    name, *values = text.split()
    return recipe.container.get(name) == tuple(values)


CHECKS: dict[str, Check] = {
    "kind": lambda recipe, text: recipe.kind == text,
    "name": lambda recipe, text: recipe.name == text,
    "engine": lambda recipe, text: recipe.engine == text,
    "no-engine": lambda recipe, text: recipe.engine is None,
    "model": lambda recipe, text: recipe.model == text,
    "image": lambda recipe, text: recipe.image == text,
    "line": lambda recipe, text: recipe.line == int(text),
    "program": lambda recipe, text: recipe.program[0] == text,
    "env": lambda recipe, text: recipe.environment.get(split(text)[0]) == split(text)[1],
    "lost": lambda recipe, text: recipe.lost_environment.get(split(text)[0]) == split(text)[1],
    "container": has_option,
    "unit": has_directive,
    "mount": lambda recipe, text: split(text) in recipe.mounts,
    "flag": has_flag,
    "no-flag": lambda recipe, text: text not in flags_of(recipe.words),
    "grant": lambda recipe, text: text in recipe.grants,
    "says": lambda recipe, text: text in "\n".join(recipe.unknown),
    "silent": lambda recipe, text: text not in "\n".join(recipe.unknown),
}


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_a_launch_is_read_as_a_person_would(file: Path) -> None:
    text = file.read_text()
    wanted = [split(line.removeprefix(MARK).rstrip()) for line in text.splitlines() if line.startswith(MARK)]
    recipes = read_written(text, f"{file.parent.name}/{file.name}")
    place = 0
    for check, value in wanted:
        if check == "recipe":
            place = int(value) - 1
        else:
            assert CHECKS[check](recipes[place], value), f"recipe {place + 1}, {check} {value}: {recipes[place]}"
    assert len(recipes) == place + 1
    assert len(wanted) > 4


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_a_printed_command_reads_back_as_the_same_launch(file: Path) -> None:
    for recipe in read_written(file.read_text(), f"{file.parent.name}/{file.name}"):
        if recipe.engine is None or not recipe.words:
            continue
        printed = read_commands(say_command(mended(recipe, ())))
        [again] = read_command([*(f"{name}={value}" for name, value in printed[0].assigned.items()), *printed[0].words])
        assert (again.engine, again.model, again.words) == (recipe.engine, recipe.model, recipe.words)
        assert again.image == recipe.image
        assert again.environment == recipe.environment
        assert len(printed) == 1
