"""Turns the paths that a launch's container sees into those of the machine, and keeps the mounts that are left to need."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import PurePath

from stoker.plan.importing.fields import Flags
from stoker.plan.importing.toml import Value
from stoker.records import Recipe

DRAFT_FLAGS = ("draft-model-path", "draft-model", "model-draft")
CONFIG = "--speculative-config"
OWN_VOLUME = re.compile(r"[a-zA-Z0-9][\w.-]*", re.ASCII)
MOST_DEPTH = 8

Mounted = tuple[str, str]


class Places:
    """The models of one launch inside its container, and where these lie outside."""

    def __init__(self, recipe: Recipe, flags: Flags) -> None:
        self.recipe = recipe
        inside = dict.fromkeys(path for path in (recipe.model or "", *_draft_paths(flags)) if path.startswith("/"))
        found = {path.rstrip("/"): mount for path in inside if (mount := _mount_of(path, recipe))}
        self.models = {path: mount for path, mount in found.items() if not OWN_VOLUME.fullmatch(mount[0])}
        self.in_volumes = {path: mount[0] for path, mount in found.items() if path not in self.models}

    def outside(self, path: str) -> str:
        """Returns a path of the machine for that of a model inside, or of what lies in one; another text as it is."""
        for model in sorted(self.models, key=len, reverse=True):
            if _is_in(path, model):
                host, inside = self.models[model]
                return whole(host, self.recipe).rstrip("/") + path.rstrip("/").removeprefix(inside.rstrip("/"))
        return home(path)

    def move(self, flags: Flags) -> None:
        """Turns the models' paths in the flags into those of the machine, also inside JSON."""
        for flag, values in flags.items():
            flags[flag] = tuple(_changed(value, self._moved) for value in values)

    def _moved(self, text: str) -> str:
        return self.outside(text) if any(_is_in(text, model) for model in self.models) else text

    def notes(self) -> list[str]:
        """Returns a sentence for each model whose path is another inside."""
        known = [f"{path} is a path inside the container, and stands here as {self.outside(path)}" for path in self.models]
        return known + [
            f"{path} lies in the volume {volume}: put in the folder that `docker volume inspect {volume}` names"
            for path, volume in self.in_volumes.items()
        ]

    def mounts(self, flags: Flags) -> dict[str, Value]:
        """Returns the mounts without those that only brought the models in: a plan mounts its models itself."""
        used = set(self.models.values())
        words = [text for values in flags.values() for value in values for text in _texts(value)]
        words += [text for value in self.recipe.environment.values() for text in value.split(":")]
        kept = [one for one in self.recipe.mounts if one not in used or any(_is_in(word, one[1]) for word in words)]
        said = tuple(f"{whole(host, self.recipe)}:{inside}{self._mode(host, inside)}" for host, inside in kept)
        return {"mounts": said} if said else {}

    def _mode(self, host: str, inside: str) -> str:
        """Returns `:ro` where the mount was read-only, which the reader of mounts leaves out."""
        start = f"{host}:{inside}:"
        volumes = [text for text in self.recipe.container.get("volume", ()) if text.startswith(start)]
        return ":ro" if any("ro" in text.removeprefix(start).split(",") for text in volumes) else ""


def _draft_paths(flags: Flags) -> Iterator[str]:
    for flag, values in flags.items():
        if flag.endswith(DRAFT_FLAGS):
            yield from values
        elif flag == CONFIG:
            trees = (_tree(value) for value in values)
            yield from (str(tree.get("model")) for tree in trees if isinstance(tree, dict))


def _mount_of(path: str, recipe: Recipe) -> Mounted | None:
    """Returns the mount in which a path inside lies: of several the innermost."""
    found = [mount for mount in recipe.mounts if mount[1].startswith("/") and _is_in(path, mount[1])]
    return max(found, key=lambda mount: len(mount[1].rstrip("/")), default=None)


def _is_in(path: str, folder: str) -> bool:
    return f"{path.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")


def _tree(text: str) -> object:
    try:
        return json.loads(text) if text.lstrip().startswith(("{", "[")) else None
    except (ValueError, RecursionError):  # somebody's text, or a trap
        return None


def _changed(text: str, change: Callable[[str], str]) -> str:
    tree = _tree(text)
    if tree is None:
        return change(text)
    changed = _changed_tree(tree, change, MOST_DEPTH)
    return text if changed == tree else json.dumps(changed, separators=(",", ":"))


def _changed_tree(tree: object, change: Callable[[str], str], depth: int) -> object:
    if isinstance(tree, dict) and depth:
        return {key: _changed_tree(value, change, depth - 1) for key, value in tree.items()}
    if isinstance(tree, list) and depth:
        return [_changed_tree(value, change, depth - 1) for value in tree]
    return change(tree) if isinstance(tree, str) else tree


def _texts(value: str) -> list[str]:
    """Returns a value, or all texts in it where it is JSON."""
    found: list[str] = []

    def keep(text: str) -> str:
        found.append(text)
        return text

    _changed(value, keep)
    return found


def whole(path: str, recipe: Recipe) -> str:
    """Returns a folder that a container mounts; compose means one that begins with a dot from where its file lies."""
    return str(PurePath(recipe.source).parent / path) if path.startswith(("./", "../")) else home(path)


def home(path: str) -> str:
    """Returns a path whose beginning is the home folder as Stoker writes it."""
    return re.sub(r"^(?:\$HOME|\$\{HOME\}|\$\{env\.HOME\})(?=/|$)", "~", path)
