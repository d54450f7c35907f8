"""Recipes of other tools, each a file that says in its first lines what a person would see in it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stoker.plan.written.flags import flags_of
from stoker.plan.written.tree import read_tree
from stoker.records import Recipe

CASES = Path(__file__).parent / "cases"
MARK = "#: "
FOLDERS = ("sparkrun", "eugr", "nvidia", "vllm", "llama-swap", "litellm")
READERS = ("sparkrun", "eugr", "nvidia", "vllm_recipes", "llama_swap", "litellm")
FILES = [file for folder in FOLDERS for file in sorted((CASES / folder).iterdir())]


def reader(name: str) -> Any:
    """Returns the module that reads a format."""
    return importlib.import_module(f"stoker.plan.written.{name}")


def flag_text(recipe: Recipe, name: str) -> str | None:
    """Returns a flag's values in one text, or None where it is not there."""
    found = flags_of(recipe.words).get(name)
    return None if found is None else " ".join(found)


def said(recipe: Recipe) -> str:
    """Returns all that a recipe says it did not understand."""
    return "\n".join(recipe.unknown)


CHECKS: dict[str, Callable[[Recipe, str], bool]] = {
    "name": lambda recipe, text: recipe.name == text,
    "kind": lambda recipe, text: recipe.kind == text,
    "engine": lambda recipe, text: recipe.engine == text,
    "no-engine": lambda recipe, text: recipe.engine is None,
    "model": lambda recipe, text: recipe.model == text,
    "image": lambda recipe, text: recipe.image == text,
    "no-image": lambda recipe, text: recipe.image is None,
    "program": lambda recipe, text: recipe.program[0] == text,
    "env": lambda recipe, text: recipe.environment.get(text.partition(" ")[0]) == text.partition(" ")[2],
    "lost": lambda recipe, text: recipe.lost_environment.get(text.partition(" ")[0]) == text.partition(" ")[2],
    "container": lambda recipe, text: recipe.container.get(text.split()[0]) == tuple(text.split()[1:]),
    "no-container": lambda recipe, text: text not in recipe.container,
    "mount": lambda recipe, text: (text.split()[0], text.split()[1]) in recipe.mounts,
    "flag": lambda recipe, text: flag_text(recipe, text.partition(" ")[0]) == text.partition(" ")[2],
    "no-flag": lambda recipe, text: flag_text(recipe, text) is None,
    "once": lambda recipe, text: recipe.words.count(text) == 1,
    "says": lambda recipe, text: text in said(recipe),
    "silent": lambda recipe, text: text not in said(recipe),
}


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_a_recipe_is_read_as_a_person_would(file: Path) -> None:
    text = file.read_text()
    wanted = [line.removeprefix(MARK).strip().partition(" ") for line in text.splitlines() if line.startswith(MARK)]
    assert wanted[0][0] == "reader"
    recipes = reader(wanted[0][2]).read(text, file.name)
    place = 0
    for check, _, value in wanted[1:]:
        if check == "recipe":
            place = int(value) - 1
        else:
            assert CHECKS[check](recipes[place], value), f"recipe {place + 1}, {check} {value}: {recipes[place]}"
    assert len(recipes) == place + 1
    assert all(recipe.source == file.name and recipe.line for recipe in recipes)


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_a_recipe_looks_like_its_own_format_only(file: Path) -> None:
    text = file.read_text()
    own = text.splitlines()[0].removeprefix(f"{MARK}reader ")
    tree = read_tree(text, file.name).value
    assert [name for name in READERS if reader(name).looks_like(tree, file.name)] == [own]
