"""Reads what a model on disk is: a GGUF, a folder of safetensors, or a hub's repository that was fetched before."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec

from stoker.config import find_paths
from stoker.errors import Refused
from stoker.facts.model.checkpoint import read_checkpoint
from stoker.facts.model.gguf_model import find_gguf, read_gguf
from stoker.facts.model.hub import find_completed, find_quantised, find_snapshot, is_hub_id, split_quantisation
from stoker.facts.model.parts import find_parts
from stoker.records import Model

SAMPLES, SAMPLE_BYTES = 16, 64 * 1024
SUFFIX = ".safetensors"
FILES = (".gguf", SUFFIX)
DIGESTED = frozenset({SUFFIX, ".json", ".jinja", ".model", ".txt"})


def read_model(path: Path, environment: Mapping[str, str] = os.environ) -> Model:
    """Returns the model at a path, or of a hub's id `org/name`; raises Refused where nothing of it can be read.

    What is damaged or missing in a folder of safetensors is named in the model; a damaged GGUF is refused.
    """
    try:
        place = _find(path, environment)
        _check_name(place.absolute())
        if place.is_file() and place.suffix != SUFFIX:
            model = read_gguf(place)
        else:
            model = _read_folder(place.parent if place.is_file() else place)
        return _with_digest(model)
    except OSError as problem:
        raise Refused(f"{path} cannot be read", why=str(problem)) from problem


def _find(path: Path, environment: Mapping[str, str]) -> Path:
    if path.exists():
        if not path.is_file() and not path.is_dir():
            hint = "name a GGUF file, or a folder that holds a model"
            raise Refused(f"{path} is neither a file nor a folder", next_step=hint)
        return path
    repository, quantisation = split_quantisation(str(path))
    snapshot = find_snapshot(repository, environment)
    if snapshot is not None and (found := _find_in(snapshot, quantisation, environment)):
        return found
    if is_hub_id(repository) and path.suffix not in FILES and not path.parent.is_dir():
        why = "no such folder, and no files of a repository of that name in the hub's cache"
        raise Refused(f"there is no model {path}", why=why, next_step=f"`stoker fetch {path}` fetches it")
    close = sorted(path.parent.glob("*.gguf"))[:3] if path.parent.is_dir() else []
    hint = f"there is: {', '.join(file.name for file in close)}" if close else "check the path"
    raise Refused(f"there is no model at {path}", why="the path does not exist", next_step=hint)


def _find_in(snapshot: Path, quantisation: str | None, environment: Mapping[str, str]) -> Path | None:
    if quantisation is not None:
        return find_quantised(snapshot, quantisation)
    return find_completed(snapshot, find_paths(environment).completed) or snapshot


def _read_folder(folder: Path) -> Model:
    if any(folder.glob(f"*{SUFFIX}")) or any(folder.glob(f"*{SUFFIX}.index.json")):
        return read_checkpoint(folder)
    found = find_gguf(folder)
    if found is not None:
        _check_name(found.absolute())
        return read_gguf(found)
    why = f"none of its files ends in .gguf or {SUFFIX}" if any(folder.iterdir()) else "it is empty"
    if any(folder.glob("*.bin")) or any(folder.glob("*.pth")):
        why = "its weights are pickled (.bin or .pth), and to read those is to run them"
    raise Refused(f"there is no model in {folder}", why=why, next_step="name a GGUF file, or a folder that holds a model")


def _check_name(file: Path) -> None:
    try:
        str(file).encode()
    except UnicodeEncodeError as problem:  # it has to go into the store and to the engine
        raise Refused(f"the path {str(file)!a} cannot be used", why="it is not UTF-8", next_step="rename it") from problem


def _with_digest(model: Model) -> Model:
    return msgspec.structs.replace(model, digest=read_digest(Path(model.path)))


def read_digest(path: Path) -> str:
    """Returns 12 hex digits that change with the model's content: its size, both ends and samples in between are hashed.

    The whole of a 70 GB model would take minutes to read; a replaced or re-quantised one differs in every sample. Of a
    folder, what lies beside the weights counts too: with another tokenizer or template it answers otherwise.
    """
    digest = hashlib.sha256()
    for file in _files(path):
        size_bytes = file.stat().st_size
        digest.update(str(size_bytes).encode())
        with file.open("rb") as content:
            _sample(digest, content, size_bytes)
    return digest.hexdigest()[:12]


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return find_parts(path)
    return [file for file in sorted(path.iterdir()) if file.suffix in DIGESTED and file.is_file()]


def _sample(digest: hashlib._Hash, content: BinaryIO, size_bytes: int) -> None:
    for sample in range(SAMPLES + 1):
        content.seek(max(0, size_bytes - SAMPLE_BYTES) * sample // SAMPLES)
        digest.update(content.read(SAMPLE_BYTES))
