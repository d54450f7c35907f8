"""Holds launches that somebody wrote against what is known: reads the file or the words, the machine, and the models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from stoker.errors import Refused, StokerError, WrongUse
from stoker.facts.boxes import read_box
from stoker.facts.catalogs import find_catalog, load_all
from stoker.facts.model import read_model
from stoker.plan.flag_findings import find_wrong_flags
from stoker.plan.lint import by_level, lint_recipe, place_of, recipe_facts
from stoker.plan.situation import assumed_version
from stoker.plan.written import read_command, read_written
from stoker.plan.written.mend import mended, say_command
from stoker.records import Finding, Machine, Model, NearCatalog, Recipe, Record, Rule
from stoker.rules.load import load_rules

MOST_BYTES = 4 * 1024 * 1024


class Linted(Record, frozen=True):
    """One launch, what is wrong with it, and the command with everything mended that can be."""

    recipe: Recipe
    findings: tuple[Finding, ...]
    mended: str | None


def lint_file(path: Path, box: str) -> list[Linted]:
    """Returns the findings on every launch in a file; raises WrongUse where it cannot be read or holds none."""
    try:
        recipes = read_written(_read(path), str(path))
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
    return _lint(recipes, box)


def lint_words(words: Sequence[str], box: str) -> list[Linted]:
    """Returns the findings on one command; raises WrongUse where it starts nothing that Stoker knows."""
    recipes = read_command(words)
    if not recipes:
        raise WrongUse(
            f"`{' '.join(words[:4])} ...` starts no engine that Stoker knows",
            next_step="give all of it after `--`: docker run ..., vllm serve ..., python -m sglang.launch_server ...",
        )
    return _lint(recipes, box)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as problem:
        raise WrongUse(f"{path} cannot be read", why=str(problem)) from problem
    if len(raw) > MOST_BYTES:
        raise WrongUse(f"{path} is larger than {MOST_BYTES // 1024**2} MiB", next_step="name a script or a recipe")
    return raw.decode(errors="replace")


def _lint(recipes: Sequence[Recipe], box: str) -> list[Linted]:
    machine = read_box(box)
    return [_lint_one(recipe, machine) for recipe in recipes]


def _lint_one(recipe: Recipe, machine: Machine) -> Linted:
    rules = load_rules(recipe.engine)
    near = _find_catalog(recipe, machine, rules)
    findings = lint_recipe(recipe, machine, rules, _read_model(recipe), near.catalog)
    if near.catalog is not None and recipe.engine:
        wrong = find_wrong_flags(recipe.words, near.catalog, load_all(recipe.engine), exact=not near.why)
        findings = by_level([*findings, *(msgspec.structs.replace(one, where=place_of(recipe)) for one in wrong)])
    can_mend = any(finding.use or finding.drop for finding in findings)
    return Linted(recipe, tuple(findings), say_command(mended(recipe, findings, near.catalog)) if can_mend else None)


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
