"""Reads files in which people wrote launches down, and makes services of them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

from stoker.config import Paths, read_config
from stoker.errors import StokerError, WrongUse
from stoker.facts.engine.catalogs import known_versions, load_catalog
from stoker.flows.reading import read_text
from stoker.plan.importing import Imported, render_services, services_of
from stoker.plan.written.read import read_written
from stoker.records import Catalog, Recipe


def import_files(files: Sequence[Path]) -> tuple[Imported, ...]:
    """Returns the services of all files; raises StokerError where a file cannot be read or holds no launch."""
    recipes = [recipe for file in files for recipe in _read_launches(file)]
    return services_of(
        recipes, {engine: newest for recipe in recipes if (newest := newest_catalog(engine := recipe.engine or ""))}
    )


def newest_catalog(engine: str) -> Catalog | None:
    """Returns the flags of an engine's newest known version; spellings that went are still understood by their words."""
    versions = known_versions(engine)
    return load_catalog(engine, versions[-1]) if versions else None


def _read_launches(file: Path) -> Iterable[Recipe]:
    recipes = read_written(read_text(file), str(file.absolute()))
    if not recipes:
        raise StokerError(
            f"{file} holds no launch",
            why="no command in it starts an engine that Stoker knows",
            next_step="give a launch script, a compose file, a unit, or a recipe (see `stoker import --help`)",
        )
    return recipes


def check_free(services: Iterable[Imported], paths: Paths, output: Path | None) -> None:
    """Raises StokerError where one of the names is taken in the file that the services are meant for."""
    meant_for = output or paths.config
    _read_before(meant_for)
    taken = [service.name for service in services if service.keys and service.name in read_config(meant_for).services]
    if taken:
        raise StokerError(
            f"{meant_for} has a service called {' and one called '.join(f'`{name}`' for name in taken)} already",
            why="no service is ever overwritten by an import",
            next_step="rename that service there, or give --output another file",
        )


def _read_before(output: Path) -> str:
    """Returns what a file holds already: nothing where it is missing; raises WrongUse where it is no ordinary file."""
    return read_text(output, "a stoker.toml") if output.exists() else ""


def append_services(services: Sequence[Imported], output: Path) -> None:
    """Appends the services to a file, which is made where it is missing; raises WrongUse where that cannot be done."""
    try:
        before = _read_before(output)
        text = render_services(services)
        added = text if not before else f"{'' if before.endswith(chr(10)) else chr(10)}\n{text}"
        tomllib.loads(before + added)  # such as a file that has a plain `service = 1`
        output.parent.mkdir(parents=True, exist_ok=True)
        with output.open("a") as opened:
            opened.write(added)
    except (OSError, ValueError) as problem:
        raise WrongUse(f"nothing can be added to {output}", why=str(problem)) from problem
