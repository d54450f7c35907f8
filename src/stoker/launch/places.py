"""Where a container sees the models of a plan, and everything else that is mounted into it. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

import msgspec

from stoker.errors import Refused
from stoker.records import Mount, Plan, Setting, SettingValue

MODEL_INSIDE, DRAFT_INSIDE, HUB_INSIDE = "/model", "/draft", "/hub"
HUB_FOLDER = re.compile(r"models--[\w.-]+")
DRAFT_NAMES = ("draft-model-path", "draft-model", "model-draft", "draft_model", "speculative-config.model")
CONFIG = "--speculative-config"


class Place(NamedTuple):
    """A model's path on the host and inside the container, and the mount that makes it so."""

    host: str
    inside: str
    mount: Mount


def plan_inside(plan: Plan) -> tuple[Plan, tuple[Mount, ...]]:
    """Returns the plan as the container sees it, with the mounts that make it so; each place inside is mounted once."""
    places = list(_places(plan))
    inside = {place.host: place.inside for place in places}
    settings = tuple(msgspec.structs.replace(one, value=_moved(one.value, inside)) for one in plan.settings)
    moved = msgspec.structs.replace(plan, model_path=inside[plan.model_path], settings=settings)
    own = [_own_mount(host, place) for host, place in plan.mounts]
    return moved, _each_once(plan.service, [*(place.mount for place in places), *own])


def _places(plan: Plan) -> Iterator[Place]:
    yield _place(plan.model_path, MODEL_INSIDE)
    drafts = dict.fromkeys(path for setting in plan.settings for path in _draft_paths(setting))
    apart = [path for path in drafts if not _is_in(path, plan.model_path)]
    for number, path in enumerate(apart, start=1):
        yield _place(path, DRAFT_INSIDE if number == 1 else f"{DRAFT_INSIDE}-{number}")


def _place(host: str, inside: str) -> Place:
    """Returns where a model is mounted: a hub's snapshot with its repository, a GGUF with its folder, else by itself.

    A snapshot holds links into the `blobs` beside it, and the parts of a split GGUF lie beside each other.
    """
    path, root = PurePosixPath(host), find_hub_folder(host)
    if root is not None:
        seen = f"{HUB_INSIDE}/{root.name}"
        return Place(host, f"{seen}/{path.relative_to(root)}", Mount(str(root), seen))
    if path.suffix == ".gguf":
        return Place(host, f"{inside}/{path.name}", Mount(str(path.parent), inside))
    return Place(host, inside, Mount(host, inside))


def find_hub_folder(host: str) -> PurePosixPath | None:
    """Returns a repository's folder in the hub's cache, where a path leads into a snapshot of one."""
    parts = PurePosixPath(host).parts
    for place, part in enumerate(parts[:-2]):
        if HUB_FOLDER.fullmatch(part) and parts[place + 1] == "snapshots":
            return PurePosixPath(*parts[: place + 1])
    return None


def _draft_paths(setting: Setting) -> list[str]:
    value = str(setting.value)
    if setting.name == CONFIG:
        tree = _json(value)
        value = str(tree.get("model", "")) if isinstance(tree, dict) else ""
    elif not setting.name.endswith(DRAFT_NAMES):
        value = ""
    return [value] if value.startswith("/") else []


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # somebody's own text
        return None


def _moved(value: SettingValue, inside: Mapping[str, str]) -> SettingValue:
    """Returns a value with the paths of the models as the container sees them, wherever such a path stands as a whole."""
    if isinstance(value, tuple):
        return tuple(_moved_text(one, inside) if isinstance(one, str) else one for one in value)
    return _moved_text(value, inside) if isinstance(value, str) else value


def _moved_text(text: str, inside: Mapping[str, str]) -> str:
    tree = _json(text) if text.lstrip().startswith(("{", "[")) else None
    if tree is None:
        return _moved_path(text, inside)
    moved = _moved_tree(tree, inside)
    return text if moved == tree else json.dumps(moved, separators=(",", ":"))


def _moved_tree(tree: object, inside: Mapping[str, str]) -> object:
    if isinstance(tree, dict):
        return {key: _moved_tree(entry, inside) for key, entry in tree.items()}
    if isinstance(tree, list):
        return [_moved_tree(entry, inside) for entry in tree]
    return _moved_path(tree, inside) if isinstance(tree, str) else tree


def _moved_path(path: str, inside: Mapping[str, str]) -> str:
    for host in sorted(inside, key=len, reverse=True):  # a draft may lie in the folder of another model
        if _is_in(path, host):
            return inside[host] + path.removeprefix(host.rstrip("/")).rstrip("/")
    return path


def _is_in(path: str, folder: str) -> bool:
    return f"{path.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")


def _own_mount(host: str, place: str) -> Mount:
    inside, _, options = place.partition(":")
    return Mount(host, inside, "ro" in options.split(","))


def _each_once(service: str, mounts: Iterable[Mount]) -> tuple[Mount, ...]:
    """Returns the mounts without those that say again what an earlier one says; raises Refused where two contradict."""
    found: dict[str, Mount] = {}
    for mount in mounts:
        first = found.setdefault(mount.inside.rstrip("/") or "/", mount)
        if first.host.rstrip("/") != mount.host.rstrip("/"):
            raise Refused(
                f"{service} would mount {first.host} and {mount.host} at {mount.inside}",
                why=f"{MODEL_INSIDE}, {DRAFT_INSIDE} and {HUB_INSIDE} are where its models go, and no place holds two",
                next_step=f"give another place inside the container to {mount.host} in `mounts`",
            )
    return tuple(found.values())
