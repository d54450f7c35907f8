"""What Stoker knows of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from stoker.box import Box, LocalBox
from stoker.config import Paths, read_config
from stoker.errors import StokerError, WrongUse
from stoker.facts.engine.image import find_image
from stoker.facts.engine.venv import read_venv
from stoker.facts.machine.cuda import read_cuda_memory
from stoker.facts.machine.details import measure_disks, read_details
from stoker.facts.machine.read import read_machine
from stoker.facts.model.hub import find_cache
from stoker.records import Environment, Machine


def read_facts(
    paths: Paths, folders: Sequence[Path] = (), images: Sequence[str] = (), venvs: Sequence[Path] = (), measure: bool = False
) -> Machine:
    """Returns the machine's facts with all details; the disks are those of the state, of the models and of the folders."""
    box = LocalBox()
    missing = [folder for folder in folders if not folder.exists()]
    if missing:
        raise WrongUse(f"there is no folder {missing[0]}", next_step="name folders that hold models")
    machine = read_machine(box, str(_existing(paths.state)))
    details = read_details(box, _folders(paths, folders))
    found = (*(need_image(box, image) for image in images), *(_find_venv(box, venv) for venv in venvs))
    details = msgspec.structs.replace(details, environments=found)
    if measure:
        machine = _measure_cuda(machine)
        details = msgspec.structs.replace(details, disks=measure_disks(details.disks))
    return msgspec.structs.replace(machine, details=details)


def _folders(paths: Paths, given: Iterable[Path]) -> list[str]:
    cache = find_cache(os.environ)
    candidates = (*given, *_models(paths), *([cache] if cache else []), paths.state)
    return list(dict.fromkeys(str(_existing(folder)) for folder in candidates))


def _models(paths: Paths) -> Iterator[Path]:
    try:
        wishes = read_config(paths.config).services.values()
    except StokerError:  # what is wrong with the configuration changes nothing about the machine
        return
    for wish in wishes:
        model = Path(wish.model)
        if model.is_absolute():  # a hub's name is not; its files lie in the cache
            yield model if model.is_dir() else model.parent


def _existing(path: Path) -> Path:
    """The folder itself, or the nearest above it that there is, without links."""
    resolved = path.resolve()
    return next(folder for folder in (resolved, *resolved.parents) if folder.exists())


def need_image(box: Box, name: str) -> Environment:
    """Returns what an image on this machine holds; raises WrongUse where there is none of that name."""
    if found := find_image(box, name):
        return found
    raise WrongUse(
        f"there is no image `{name}` on this machine",
        why="neither docker nor podman knows it, or neither answers",
        next_step=f"pull it first (docker pull {name}); `docker image ls` lists what is there",
    )


def _find_venv(box: LocalBox, folder: Path) -> Environment:
    if found := read_venv(box, str(folder.absolute())):
        return found
    raise WrongUse(
        f"{folder} is no virtual environment", why="it has no lib/pythonX.Y/site-packages", next_step="name its top folder"
    )


def _measure_cuda(machine: Machine) -> Machine:
    found = read_cuda_memory()
    if found is None:
        return machine
    # CUDA's own word on sharing outweighs what NVML leaves to be concluded.
    unified = machine.unified_memory if found.unified is None else found.unified
    return msgspec.structs.replace(machine, cuda_visible_bytes=found.total_bytes, unified_memory=unified)
