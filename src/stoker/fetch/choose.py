"""Chooses the files that engines need of a repository, and says what is left out and why. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import PurePosixPath
from typing import NamedTuple

from stoker.errors import Refused, WrongUse
from stoker.facts.model.hub import quantisation_of
from stoker.fetch.listing import HubFile
from stoker.records import LeftOut, say_bytes

SAFETENSORS, GGUF = ".safetensors", ".gguf"
# Pickles and other frameworks' weights: no engine that Stoker knows loads them where safetensors are.
OTHER_WEIGHTS = frozenset({
    ".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack", ".onnx", ".onnx_data", ".ot", ".tflite", ".pb", ".mlmodel", ".npz",
    ".safetensors_old", ".nemo", ".engine", ".pkl",
})  # fmt: skip
MEDIA = frozenset({
    ".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".mp4", ".mov", ".webm", ".wav", ".mp3", ".pdf", ".zip", ".gz", ".tar",
    ".parquet", ".ipynb", ".csv",
})  # fmt: skip
PROJECTOR = "mmproj"
CONSOLIDATED = re.compile(r"consolidated.*\.safetensors(\.index\.json)?")
CONFIG = "config.json"
LISTED = 12


class Choice(NamedTuple):
    """What to fetch, and what not."""

    files: tuple[HubFile, ...]
    left_out: tuple[LeftOut, ...] = ()


def choose_files(repository: str, files: tuple[HubFile, ...], quantisation: str | None, everything: bool = False) -> Choice:
    """Returns what engines need; raises Refused or WrongUse where the repository holds nothing for them, or too much."""
    if everything:
        return Choice(files)
    if quantisation is not None or not _of(files, SAFETENSORS):
        return _choose_gguf(repository, files, quantisation)
    return _choose_safetensors(files)


def _of(files: Iterable[HubFile], suffix: str) -> list[HubFile]:
    return [file for file in files if file.name.endswith(suffix)]


def _choose_safetensors(files: tuple[HubFile, ...]) -> Choice:
    names = {file.name for file in files}
    twice = CONFIG in names and any(_is_root(file, SAFETENSORS) and not _is_consolidated(file) for file in files)
    in_root = any(_is_root(file, SAFETENSORS) for file in files)
    reasons: list[tuple[str, Callable[[HubFile], bool]]] = [
        ("the same weights in Mistral's own layout", lambda file: twice and _is_consolidated(file)),
        ("weights in a folder of their own; those beside config.json are served", lambda file: in_root and _is_below(file)),
        ("GGUF copies; name one with :QUANT", lambda file: file.name.endswith(GGUF)),
        ("weights for other frameworks; the safetensors are served", lambda file: _suffix(file) in OTHER_WEIGHTS),
        ("pictures and archives", lambda file: _suffix(file) in MEDIA),
    ]
    return _without(files, reasons)


def _choose_gguf(repository: str, files: tuple[HubFile, ...], quantisation: str | None) -> Choice:
    models = [file for file in _of(files, GGUF) if not _is_projector(file)]
    if not models:
        raise _nothing(repository, files, quantisation)
    wanted = quantisation or _only(repository, models)
    chosen = {file.name for file in models if quantisation_of(file.name) == wanted.upper()} if wanted else {models[0].name}
    if not chosen:
        raise WrongUse(f"{repository} has no {wanted}", next_step=_offer(repository, models))
    reasons: list[tuple[str, Callable[[HubFile], bool]]] = [
        ("other quantisations", lambda file: file.name.endswith(GGUF) and not (_is_projector(file) or file.name in chosen)),
        ("weights for other engines; the GGUF is served", lambda file: _suffix(file) in OTHER_WEIGHTS | {SAFETENSORS}),
        ("pictures and archives", lambda file: _suffix(file) in MEDIA),
    ]
    return _without(files, reasons)


def _only(repository: str, models: list[HubFile]) -> str | None:
    """Returns the one quantisation there is; None where a single file does not say; raises where there are several."""
    found = {quantisation_of(file.name) for file in models}
    if len(found) == 1 and (len(models) == 1 or None not in found):
        return found.pop()
    raise WrongUse(
        f"{repository} holds several GGUF models",
        why="which of them is yours to choose",
        next_step=_offer(repository, models),
    )


def _offer(repository: str, models: list[HubFile]) -> str:
    sizes: dict[str, int] = {}
    for file in models:
        kind = quantisation_of(file.name)
        if kind is not None:
            sizes[kind] = sizes.get(kind, 0) + file.size_bytes
    said = [f"{repository}:{kind} ({say_bytes(size)})" for kind, size in sorted(sizes.items(), key=lambda one: one[1])]
    return "name one of: " + ", ".join(said[:LISTED]) + (" ..." if len(said) > LISTED else "")


def _nothing(repository: str, files: tuple[HubFile, ...], quantisation: str | None) -> Refused:
    if quantisation is not None:
        return Refused(f"{repository} holds no GGUF, so no {quantisation}", next_step=f"`stoker fetch {repository}`")
    pickled = any(_suffix(file) in OTHER_WEIGHTS for file in files)
    why = "its weights are pickled or for other frameworks" if pickled else "none of its files ends in .safetensors or .gguf"
    return Refused(
        f"{repository} holds no weights that Stoker's engines load",
        why=why,
        next_step="name a repository with safetensors or a GGUF; `--all` fetches it as it is",
    )


def _without(files: tuple[HubFile, ...], reasons: list[tuple[str, Callable[[HubFile], bool]]]) -> Choice:
    kept: list[HubFile] = []
    dropped: dict[str, list[HubFile]] = {}
    for file in files:
        why = next((why for why, leaves_out in reasons if leaves_out(file)), None)
        (kept if why is None else dropped.setdefault(why, [])).append(file)
    said = (LeftOut(why, tuple(file.name for file in group), _total(group)) for why, group in dropped.items())
    return Choice(tuple(kept), tuple(said))


def _total(files: Iterable[HubFile]) -> int:
    return sum(file.size_bytes for file in files)


def _suffix(file: HubFile) -> str:
    return PurePosixPath(file.name).suffix.lower()


def _is_root(file: HubFile, suffix: str) -> bool:
    return "/" not in file.name and file.name.endswith(suffix)


def _is_below(file: HubFile) -> bool:
    return "/" in file.name and file.name.endswith((SAFETENSORS, f"{SAFETENSORS}.index.json"))


def _is_consolidated(file: HubFile) -> bool:
    return CONSOLIDATED.fullmatch(file.name) is not None


def _is_projector(file: HubFile) -> bool:
    return PurePosixPath(file.name).name.startswith(PROJECTOR)
