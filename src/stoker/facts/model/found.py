"""Finds the models that lie on a machine already: in the hub's cache, and in the folders where people keep them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from stoker.facts.model.hub import FOLDER, find_cache, find_snapshot, quantisation_of

# Below a person's home, and below the root: where downloads of other tools lie, and what people call such a folder.
AT_HOME = ("models", "Models", ".lmstudio/models", ".cache/lm-studio/models", ".cache/llama.cpp", "llama.cpp/models")
AT_ROOT = ("/models", "/srv/models", "/opt/models", "/data/models", "/mnt/models")
DEEP = 4  # folders below those: LM Studio has maker/model/file
MOST_FOLDERS = 2000  # what a mistaken link into the whole disk would cost
FIRST_PART = "-00001-of-"
WEIGHTS = ".safetensors"


def find_models(environment: Mapping[str, str], roots: tuple[str, ...] = AT_ROOT) -> tuple[str, ...]:
    """Returns what `stoker up` would take for each model: a hub's name, a folder or a GGUF file; none twice."""
    home = environment.get("HOME")
    places = [*(Path(home) / name for name in AT_HOME if home), *map(Path, roots)]
    found = [*_in_cache(environment), *(target for place in places for target in _in_folder(place))]
    return tuple(dict.fromkeys(found))


def _in_cache(environment: Mapping[str, str]) -> Iterator[str]:
    cache = find_cache(environment)
    for folder in _sorted(cache) if cache is not None else ():
        named = FOLDER.fullmatch(folder.name)
        repository = named["name"].replace("--", "/", 1) if named else ""
        snapshot = find_snapshot(repository, environment) if "/" in repository else None
        if snapshot is None:
            continue
        quantisations = dict.fromkeys(quantisation_of(file.name) for file in _ggufs(snapshot))
        if quantisations:
            yield from (f"{repository}:{one}" for one in quantisations if one)
        elif any(snapshot.glob(f"*{WEIGHTS}")):
            yield repository


def _in_folder(place: Path) -> Iterator[str]:
    for seen, (name, folders, files) in enumerate(os.walk(place)):  # an unreadable or missing folder is an empty one
        folder = Path(name)
        if seen > MOST_FOLDERS:
            return
        folders[:] = sorted(one for one in folders if not one.startswith("."))
        if len(folder.relative_to(place).parts) >= DEEP:
            folders.clear()
        yield from (str(folder / file) for file in sorted(files) if _is_model(file))
        if "config.json" in files and any(file.endswith(WEIGHTS) for file in files):
            yield name


def _ggufs(snapshot: Path) -> Iterator[Path]:
    return (file for file in sorted(snapshot.rglob("*.gguf")) if _is_model(file.name))


def _is_model(file: str) -> bool:
    """Tells whether a file is a GGUF and no eye or ear of one; of a split one only the first part counts."""
    is_part = "-of-" in file and FIRST_PART not in file
    return file.endswith(".gguf") and not file.startswith("mmproj") and not is_part


def _sorted(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []
