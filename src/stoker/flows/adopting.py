"""Reads a running engine, so that the daemon can take it over as it is."""

from __future__ import annotations

import http.client
import os
from pathlib import Path

import msgspec

from stoker.box import LocalBox
from stoker.errors import Refused, WrongUse
from stoker.facts.engine.catalogs import find_catalog
from stoker.facts.engine.flags import find_flag
from stoker.facts.machine.ports import read_listeners
from stoker.facts.machine.started import Started, read_kin, read_started
from stoker.flows.adopting_container import UNKNOWN, read_container_adoption, read_known_model
from stoker.flows.lint import lint_recipe_here
from stoker.launch.keys import read_key
from stoker.launch.names import CONTAINER
from stoker.launch.process import MARKER_VARIABLE
from stoker.plan.adopting import Found, check_speaks_plainly, choose_port, plan_adopted, recognise, served_name
from stoker.plan.secrets import secrets_in
from stoker.records import AdoptedProcess, Adoption, AdoptWish, Recipe
from stoker.supervise.held import read_held
from stoker.supervise.process import read_boot_id, read_start_ticks
from stoker.supervise.tree import Tree

LONGEST_PID = 11
HOST, ASK_LIMIT_S = "127.0.0.1", 3.0


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model] = []


def read_target(target: str) -> tuple[int, str | None]:
    """Returns the pid that a word of the command line is, or 0 and the name of a container."""
    if target.isdecimal() and len(target) < LONGEST_PID:
        return int(target), None
    if CONTAINER.fullmatch(target) is None:
        raise WrongUse(f"`{target}` is neither a pid nor a container's name", next_step="see `stoker adopt --help`")
    return 0, target


def read_adoption(wish: AdoptWish) -> Adoption:
    """Returns the plan of a running engine; raises WrongUse or Refused where it is none, or cannot be watched from here."""
    if wish.container is not None:
        return read_container_adoption(wish, wish.container)
    ticks = read_start_ticks(wish.pid)
    started = read_started(wish.pid)
    if ticks is None or started is None:
        raise WrongUse(
            f"there is no process with the pid {wish.pid}", next_step="`pgrep -af 'vllm|sglang|llama'` lists engines"
        )
    _check_is_ours(started)
    recipe = _recognise(started)
    check_speaks_plainly(recipe)
    tree = Tree(wish.pid, ticks, {wish.pid: ticks})
    tree.look()
    found = _read_found(wish, started, recipe, tree)
    plan = plan_adopted(wish, recipe, found)
    _check_still_there(wish.pid, ticks)
    return Adoption(plan, lint_recipe_here(recipe), _notes(started, found))


def _check_is_ours(started: Started) -> None:
    if started.is_inside:
        raise Refused(
            f"pid {started.pid} runs in a container",
            why="what else belongs to it is known to its container engine alone, and so is how to end it",
            next_step="name the container instead: `stoker adopt NAME`",
        )
    if started.uid != os.getuid():
        raise Refused(
            f"pid {started.pid} belongs to {started.user}, not to you",
            why="Stoker runs without root's rights, so it could neither read how that process was started nor end it",
            next_step=f"run Stoker as {started.user}, or start the engine as this user",
        )
    marker = (started.environment or {}).get(MARKER_VARIABLE)
    if marker:
        service = marker.split("/")[1] if marker.count("/") > 1 else marker
        raise Refused(f"pid {started.pid} was started by Stoker already, as {service}", next_step="`stoker status` shows it")


def _recognise(started: Started) -> Recipe:
    recipe = _recipe_of(started)
    if recipe is not None:
        return recipe
    above, below = read_kin(started.pid)
    for pid in (*above, *below):
        other = read_started(pid)
        if other is not None and other.uid == started.uid and _recipe_of(other) is not None:
            raise WrongUse(
                f"pid {started.pid} is not an engine's first process: that is pid {pid}",
                next_step=f"`stoker adopt {pid}`",
            )
    raise WrongUse(
        f"pid {started.pid} is no engine that Stoker knows",
        why=f"it was called as `{' '.join(started.words)[:120] or 'nothing'}`",
        next_step="name the process that was called as vllm serve, python -m sglang.launch_server or llama-server",
    )


def _recipe_of(started: Started) -> Recipe | None:
    return recognise(started.words, started.environment or {}, f"pid {started.pid}")


def _read_found(wish: AdoptWish, started: Started, recipe: Recipe, tree: Tree) -> Found:
    catalog = find_catalog(recipe.engine or "", None).catalog
    usual = find_flag(catalog, "--port") if catalog else None
    default = usual.flag.default if usual else None
    pids = tree.pids()
    listeners = [one for one in read_listeners() if one.pid in pids]
    port = choose_port(recipe, wish.port, default if isinstance(default, int) else None, listeners)
    key = read_key(started.words, [f"{name}={value}" for name, value in (started.environment or {}).items()])
    if wish.restart and (key or secrets_in(started.words)):
        raise Refused(
            f"pid {started.pid} was started with a secret, so Stoker could not start it again",
            why="Stoker keeps no secret of an engine's on its disk, and without it the engine would not be the same",
            next_step="leave --restart out, or make a service of it in stoker.toml, whose engines get a key of their own",
        )
    path, revision = _read_model(recipe.model, started.folder or "/")
    process = AdoptedProcess(
        started.pid, tree.known[started.pid], read_boot_id(), tree.members(), started.folder or "/", wish.restart
    )
    served = served_name(recipe, _ask_models(port, key))
    words = started.words if wish.restart else ()  # they may hold what is nobody's business
    return Found(process, words, started.environment or {}, port, served, path, revision, read_held(pids))


def _read_model(name: str | None, folder: str) -> tuple[str, str]:
    """Returns the model's path and digest, where its files are on this machine."""
    if name is None:
        return read_known_model(None)
    place = Path(folder) / name
    return read_known_model(str(place) if place.exists() else name)


def _ask_models(port: int, key: str | None) -> list[str]:
    """Asks the engine for its models' names; none where it does not answer, as while it loads."""
    connection = http.client.HTTPConnection(HOST, port, timeout=ASK_LIMIT_S)
    try:
        connection.request("GET", "/v1/models", headers={"authorization": f"Bearer {key}"} if key else {})
        reply = connection.getresponse()
        return [one.id for one in msgspec.json.decode(reply.read(), type=_Models).data] if reply.status == 200 else []
    except (OSError, http.client.HTTPException, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return []
    finally:
        connection.close()


def _check_still_there(pid: int, ticks: int) -> None:
    if read_start_ticks(pid) != ticks:
        raise Refused(f"pid {pid} ended while it was being looked at", next_step="start it again, and adopt it once it runs")


def _notes(started: Started, found: Found) -> tuple[str, ...]:
    notes = []
    if started.environment is None:
        notes.append("its environment may not be read: what lint says knows its words alone")
    if found.revision == UNKNOWN:
        notes.append("its model's files were not found here, so a change of them would not be noticed")
    if LocalBox().find_program("nvidia-smi"):
        notes.append("what it holds of a GPU's memory is not known to the kernel; say it with --claim-gib")
    return tuple(notes)
