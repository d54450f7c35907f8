"""Holds launches that somebody wrote against what is known: reads the file or the words, the machine, and the models."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from stoker.errors import Refused, StokerError, WrongUse
from stoker.facts.boxes import read_box
from stoker.facts.catalogs import find_catalog, load_all
from stoker.facts.model import read_model
from stoker.flows.reading import read_text
from stoker.plan.flag_findings import find_wrong_flags
from stoker.plan.lint import by_level, lint_recipe, place_of, recipe_facts
from stoker.plan.situation import assumed_version
from stoker.plan.written import dockerfile, read_command, read_written
from stoker.plan.written.mend import mended
from stoker.plan.written.quoting import open_in_script, open_variables, say_command, say_comments
from stoker.records import Finding, Machine, Model, NearCatalog, Recipe, Record, Rule
from stoker.rules.load import load_rules

# The kinds of launch whose file is shell text; all others are read by programs of their own.
FROM_SHELLS = ("command", "docker")
TOLD = re.compile(r"`(\$[^`]+)`")
WORDS = {"forbid": "forbidden", "warn": "a warning"}


class Linted(Record, frozen=True):
    """One launch, what is wrong with it, and the command with everything mended that can be, below comments on the rest."""

    recipe: Recipe
    findings: tuple[Finding, ...]
    mended: str | None


def lint_file(path: Path, box: str) -> list[Linted]:
    """Returns the findings on every launch in a file; raises WrongUse where it cannot be read or holds none."""
    text = read_text(path)
    try:
        recipes = read_written(text, str(path))
    except Refused:
        raise
    except StokerError as problem:  # whatever cannot be read as a launch is not a fault that was found in one
        raise WrongUse(problem.what, why=problem.why, next_step=problem.next_step) from problem
    if not recipes:
        raise WrongUse(
            f"{path} starts no engine that Stoker knows",
            why="no docker run, vllm, sglang, llama-server, systemd or sudoers line was found in it",
            next_step="name a shell script, a compose file, a unit, a sudoers file or a recipe",
        )
    return _lint(recipes, box, None if dockerfile.looks_like(text, str(path)) else text)


def lint_words(words: Sequence[str], box: str) -> list[Linted]:
    """Returns the findings on one command; raises WrongUse where it starts nothing that Stoker knows."""
    recipes = read_command(words)
    if not recipes:
        raise WrongUse(
            f"`{' '.join(words[:4])} ...` starts no engine that Stoker knows",
            next_step="give all of it after `--`: docker run ..., vllm serve ..., python -m sglang.launch_server ...",
        )
    return _lint(recipes, box)


def _lint(recipes: Sequence[Recipe], box: str, text: str | None = None) -> list[Linted]:
    """`text` is what the launches were read from, where a shell would run what is open in it."""
    machine = read_box(box)
    is_script = text is not None and any(recipe.kind in FROM_SHELLS for recipe in recipes)
    in_script = open_in_script(text or "") if is_script else frozenset()
    return [_lint_one(recipe, machine, in_script) for recipe in recipes]


def _lint_one(recipe: Recipe, machine: Machine, in_script: frozenset[str]) -> Linted:
    rules = load_rules(recipe.engine)
    near = _find_catalog(recipe, machine, rules)
    findings = _find(recipe, machine, rules, near)
    if not any(one.use or one.drop for one in findings):
        return Linted(recipe, findings, None)
    words = mended(recipe, findings, near.catalog)
    left = _find(_read_again(recipe, words), machine, rules, near)
    left_open = in_script if recipe.kind in FROM_SHELLS else open_variables(recipe.unknown, recipe.kind)
    command = say_command(words, left_open)
    said = [*_replaced(recipe), *_closed(recipe, command, left_open), *_left(left)]
    return Linted(recipe, findings, "\n".join([*say_comments(said), command]))


def _find(recipe: Recipe, machine: Machine, rules: tuple[Rule, ...], near: NearCatalog) -> tuple[Finding, ...]:
    found = lint_recipe(recipe, machine, rules, _read_model(recipe), near.catalog)
    if recipe.engine:
        wrong = find_wrong_flags(recipe.words, near.catalog, load_all(recipe.engine), exact=not near.why)
        found = by_level([*found, *(msgspec.structs.replace(one, where=place_of(recipe)) for one in wrong)])
    return tuple(found)


def _read_again(recipe: Recipe, words: tuple[str, ...]) -> Recipe:
    """The mended launch as its words say it; what is no part of them, a unit's directives among it, is as it was."""
    try:
        [found] = read_command(words)
    except StokerError:
        return recipe
    lost = {name: value for name, value in recipe.lost_environment.items() if name not in found.environment}
    return msgspec.structs.replace(
        found, unit=recipe.unit, grants=recipe.grants, lost_environment=lost, beside=recipe.beside,
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


def _find_catalog(recipe: Recipe, machine: Machine, rules: tuple[Rule, ...]) -> NearCatalog:
    """The flags of the recipe's engine: of the version that its image tells, or that a rule takes it for."""
    if recipe.engine is None:
        return NearCatalog(None)
    facts = recipe_facts(recipe, machine)
    said = facts.get("version")
    assumed = assumed_version(rules, facts)
    near = find_catalog(recipe.engine, str(said) if said is not None else assumed)
    return NearCatalog(near.catalog, near.why or ("the version is not certain" if assumed else ""))


def _read_model(recipe: Recipe) -> Model | None:
    """The model where it lies on this machine, seen from outside the container; else what its name says has to do."""
    if not recipe.model:
        return None
    outside = next((host for host, inside in recipe.mounts if inside.rstrip("/") == recipe.model.rstrip("/")), recipe.model)
    if not Path(outside).exists():
        return None
    try:
        return read_model(Path(outside))
    except StokerError:
        return None
