"""Finds a hub's repository among the files that were fetched before; nothing is asked over the network."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import msgspec

from stoker.facts.model.documents import read_content
from stoker.records import Pin
from stoker.written_paths import expand_home

NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
REVISION = re.compile(r"[A-Za-z0-9][\w.-]{0,127}")
# How GGUF files are named after their quantisation, alone or with the maker's prefix: Q4_K_M, UD-IQ2_XXS, BF16, MXFP4_MOE.
QUANTISATION = re.compile(r"(?:^|[-_.])((?:UD-)?(?:I?Q\d\w*|TQ\d_\d|BF16|F16|F32|MXFP4\w*))(?=[-.]|$)", re.IGNORECASE)
PART = re.compile(r"-\d{5}-of-\d{5}$")
PIN = Path(".stoker/pin.json")
PIN_LIMIT_BYTES = 64 * 1024
FOLDER = re.compile(r"models--(?P<name>[\w.-]+)")


def is_hub_id(word: str) -> bool:
    """Tells whether a word looks like `org/name`."""
    return NAME.fullmatch(word) is not None and ".." not in word and "--" not in word.partition("/")[0]


def find_cache(environment: Mapping[str, str]) -> Path | None:
    """Returns the hub's cache folder, by the variables that its own library asks, in its order."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if environment.get(name):
            return expand_home(environment[name], name)
    if environment.get("HF_HOME"):
        return expand_home(environment["HF_HOME"], "HF_HOME") / "hub"
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


def split_quantisation(word: str) -> tuple[str, str | None]:
    """Returns a hub name's repository and the quantisation behind its colon."""
    repository, _, quantisation = word.partition(":")
    return repository, quantisation or None


def quantisation_of(name: str) -> str | None:
    """Returns the quantisation that a GGUF's name tells, in capitals; its folder's where the file has none."""
    path = PurePosixPath(name)
    for part in (PART.sub("", path.stem), path.parent.name):
        found = QUANTISATION.findall(part)
        if found:
            return str(found[-1]).upper()
    return None


def find_quantised(folder: Path, quantisation: str) -> Path | None:
    """Returns the GGUF of this quantisation, the first part of a split one."""
    files = (file for file in sorted(folder.rglob("*.gguf")) if not file.name.startswith("mmproj"))
    wanted = quantisation.upper()
    return next((file for file in files if quantisation_of(str(file.relative_to(folder))) == wanted), None)


def read_pin(folder: Path) -> Pin | None:
    """Returns where a fetch noted that a folder's files are from; None where it did not."""
    content = read_content(folder / PIN, [], PIN_LIMIT_BYTES)
    try:
        return msgspec.json.decode(content, type=Pin) if content else None
    except msgspec.MsgspecError:
        return None


def find_completed(snapshot: Path, completed: Path) -> Path | None:
    """Returns the folder in which a fetch completed this snapshot with files from elsewhere, or None."""
    folder = completed / Path(*snapshot.parts[-3:])
    return folder if (folder / PIN).is_file() else None


def name_of(path: Path) -> tuple[str | None, str | None]:
    """Returns (repository, revision) that a path inside a hub's cache tells, or a fetch noted; None of both elsewhere."""
    parts = path.absolute().parts
    for place, part in enumerate(parts[:-2]):
        found = FOLDER.fullmatch(part)
        if found and parts[place + 1] == "snapshots":
            return found["name"].replace("--", "/", 1), parts[place + 2]
    pin = read_pin(path if path.is_dir() else path.parent)
    return (pin.repository, pin.revision) if pin else (None, None)
