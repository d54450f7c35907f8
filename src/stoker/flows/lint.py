"""Holds launches that somebody wrote against what is known: reads the file or the words, the machine, and the models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from stoker.errors import Refused, StokerError, WrongUse
from stoker.facts.engine.catalogs import find_catalog, load_all
from stoker.facts.machine.boxes import THIS, read_box
from stoker.facts.model.read import read_model
from stoker.flows.mending import FROM_SHELLS, mend_text
from stoker.flows.reading import read_text
from stoker.plan.flag_findings import find_wrong_flags
from stoker.plan.lint import by_level, lint_recipe, place_of, recipe_facts
from stoker.plan.situation import assumed_version
from stoker.plan.written import dockerfile
from stoker.plan.written.quoting import open_in_script
from stoker.plan.written.read import read_command, read_written
from stoker.records import Finding, Machine, Model, NearCatalog, Recipe, Record, Rule
from stoker.rules.load import load_rules


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


def lint_recipe_here(recipe: Recipe) -> tuple[Finding, ...]:
    """Returns the findings on a launch that was read from this machine itself."""
    machine, rules = read_box(THIS), load_rules(recipe.engine)
    return _find(recipe, machine, rules, _find_catalog(recipe, machine, rules))


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
    changes = any(one.use or one.drop for one in findings)
    text = (
        mend_text(recipe, findings, near.catalog, in_script, lambda one: _find(one, machine, rules, near))
        if changes
        else None
    )
    return Linted(recipe, findings, text)


def _find(recipe: Recipe, machine: Machine, rules: tuple[Rule, ...], near: NearCatalog) -> tuple[Finding, ...]:
    found = lint_recipe(recipe, machine, rules, _read_model(recipe), near.catalog)
    if recipe.engine:
        wrong = find_wrong_flags(recipe.words, near.catalog, load_all(recipe.engine), exact=not near.why)
        wrong = [one for one in wrong if not _is_told(one, found)]
        found = by_level([*found, *(msgspec.structs.replace(one, where=place_of(recipe)) for one in wrong)])
    return tuple(found)


def _is_told(wrong: Finding, found: Sequence[Finding]) -> bool:
    """Whether a rule speaks of the same unknown flag, and so knows better than its spelling what was meant."""
    return any(flag in one.drop for one in found for flag in wrong.what.split() if flag.startswith("--"))


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
