"""Finds a hub's repository among the files that were fetched before; nothing is asked over the network."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
REVISION = re.compile(r"[A-Za-z0-9][\w.-]{0,127}")
FOLDER = re.compile(r"models--(?P<name>[\w.-]+)")


def is_hub_id(word: str) -> bool:
    """Tells whether a word looks like `org/name`."""
    return NAME.fullmatch(word) is not None and ".." not in word and "--" not in word.partition("/")[0]


def find_cache(environment: Mapping[str, str]) -> Path | None:
    """Returns the hub's cache folder, by the variables that its own library asks, in its order."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if environment.get(name):
            return Path(environment[name]).expanduser()
    if environment.get("HF_HOME"):
        return Path(environment["HF_HOME"]).expanduser() / "hub"
    if environment.get("XDG_CACHE_HOME"):
        return Path(environment["XDG_CACHE_HOME"]) / "huggingface/hub"
    return Path(environment["HOME"]) / ".cache/huggingface/hub" if environment.get("HOME") else None


def find_snapshot(repository: str, environment: Mapping[str, str]) -> Path | None:
    """Returns the folder of a repository's files: what `main` was when it was fetched, else the newest; None without any."""
    cache = find_cache(environment)
    if cache is None or not is_hub_id(repository):
        return None
    folder = cache / f"models--{repository.replace('/', '--')}"
    snapshots = folder / "snapshots"
    named = _read_reference(folder / "refs/main")
    if named and (snapshots / named).is_dir():
        return snapshots / named
    found = [entry for entry in snapshots.iterdir() if entry.is_dir()] if snapshots.is_dir() else []
    return max(found, key=lambda entry: (entry.stat().st_mtime, entry.name), default=None)


def _read_reference(file: Path) -> str | None:
    try:
        with file.open(errors="replace") as content:
            named = content.read(200).strip()
    except OSError:
        return None
    return named if REVISION.fullmatch(named) else None


def name_of(path: Path) -> tuple[str | None, str | None]:
    """Returns (repository, revision) that a path inside a hub's cache tells; None of both elsewhere."""
    parts = path.absolute().parts
    for place, part in enumerate(parts[:-2]):
        found = FOLDER.fullmatch(part)
        if found and parts[place + 1] == "snapshots":
            return found["name"].replace("--", "/", 1), parts[place + 2]
    return None, None
