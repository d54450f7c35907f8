"""Reads a running container with an engine in it, so that the daemon can take it over as it is."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

from stoker.errors import Refused, StokerError
from stoker.facts.engine.catalogs import find_catalog
from stoker.facts.engine.flags import find_flag
from stoker.facts.model.read import read_model
from stoker.flows.lint import lint_recipe_here
from stoker.launch.container_api import LABEL_SERVICE
from stoker.plan.adopting import Found, check_speaks_plainly, plan_adopted, recognise, served_name
from stoker.plan.adopting_container import host_path, host_port, variables_of_container, words_of_container
from stoker.plan.written.flags import flags_of
from stoker.records import AdoptedProcess, Adoption, AdoptWish, Recipe
from stoker.supervise.held import read_held
from stoker.supervise.process import read_boot_id, read_start_ticks
from stoker.supervise.tree import Tree

Document = dict[str, Any]
UNKNOWN = "unknown"


def read_container_adoption(wish: AdoptWish, name: str) -> Adoption:
    """Returns the plan of an engine in a container; raises Refused where it is none, or is not reached from here."""
    from stoker.supervise.runtimes.adopted_container import read_container  # only who has containers pays for it

    if wish.restart:
        raise Refused(
            "a container cannot be adopted with --restart",
            why="how it is started again is known to who started it; its own restart policy goes on working",
            next_step="leave --restart out, or make a service of it: `stoker import`",
        )
    found = asyncio.run(read_container(name))[1]
    _check_is_not_ours(found, name)
    words, variables = words_of_container(found), variables_of_container(found)
    recipe = recognise(words, variables, f"container {name}")
    if recipe is None:
        raise Refused(
            f"the container {name} runs no engine that Stoker knows", why=f"it was started as `{' '.join(words)[:120]}`"
        )
    check_speaks_plainly(recipe)
    process = _process_of(found)
    tree = Tree(process.pid, process.start_ticks, dict(process.members))
    tree.look()
    held_bytes = read_held(tree.pids())
    path, revision = read_known_model(host_path(found, recipe.model) if recipe.model else None)
    port, served = _port_of(wish, recipe, found), served_name(recipe, [])
    ready = Found(process, (), variables, port, served, path, revision, held_bytes)
    notes = ("its model's files were not found here, so a change of them would not be noticed",) if not path else ()
    return Adoption(plan_adopted(wish, recipe, ready), lint_recipe_here(recipe), notes)


def read_known_model(place: str | None) -> tuple[str, str]:
    """Returns a model's path and digest, where its files are on this machine; else no path."""
    if place is not None:
        with contextlib.suppress(StokerError):
            model = read_model(Path(place))
            return model.path, model.digest
    return "", UNKNOWN


def _check_is_not_ours(found: Document, name: str) -> None:
    labels = (found.get("Config") or {}).get("Labels") or {}
    if service := labels.get(LABEL_SERVICE):
        raise Refused(f"{name} was started by Stoker, as {service}", next_step="`stoker status` shows it")


def _process_of(found: Document) -> AdoptedProcess:
    pid = int(found["State"].get("Pid") or 0)
    ticks = read_start_ticks(pid) if pid else None
    if ticks is None:
        raise Refused("its first process is not seen from here", why="its container engine runs in a machine of its own")
    return AdoptedProcess(pid, ticks, read_boot_id(), ((pid, ticks),), "/", container=str(found["Id"]))


def _port_of(wish: AdoptWish, recipe: Recipe, found: Document) -> int:
    """Returns the port on this machine's loopback at which the engine answers."""
    if wish.port is not None:
        return wish.port
    said = flags_of(recipe.words).get("--port")
    catalog = find_catalog(recipe.engine or "", None).catalog
    usual = find_flag(catalog, "--port") if catalog else None
    inside = int(said[0]) if said and said[0].isdecimal() else usual.flag.default if usual else None
    port = host_port(found, inside) if isinstance(inside, int) else None
    if port is None:
        raise Refused(
            f"port {inside or 'of its engine'} of the container is not published on this machine's loopback",
            next_step="name the port at which it answers here: --port PORT",
        )
    return port
