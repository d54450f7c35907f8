"""A client's own file: where it is, whether its programs may be started, and how a mended one takes its place."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path

from stoker.clients import Client
from stoker.errors import StokerError, WrongUse
from stoker.written_paths import expand_home

OTHERS_READ = stat.S_IRGRP | stat.S_IROTH
TRUSTED = "trusted_folders.toml"


def find_file(client: Client, named: Path | None, environment: Mapping[str, str] = os.environ) -> Path:
    """Returns the file to check: the one named, the one in a folder named, or the client's own; raises WrongUse."""
    if named is not None and not named.is_dir():
        return named
    places = _own_places(client, environment) if named is None else _places_in(client, named)
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        looked = ", ".join(map(str, places))
        raise WrongUse(
            f"no settings of {client.title} were found",
            why=f"looked for {looked}" if looked else "they are in no file of their own",
            next_step=f"name the file that holds them: stoker clients check {client.name} FILE",
        )
    return found


def client_home(client: Client, environment: Mapping[str, str]) -> Path:
    """Returns the folder that holds a client's settings: the one that its variable names, or its own in the user's home."""
    moved = environment.get(client.home_variable, "") if client.home_variable else ""
    home = Path(environment.get("HOME") or Path.home())
    return expand_home(moved, client.home_variable) if moved else home / f".{client.name}" if client.home_variable else home


def _own_places(client: Client, environment: Mapping[str, str]) -> list[Path]:
    return [client_home(client, environment) / place for place in client.places]


def _places_in(client: Client, folder: Path) -> list[Path]:
    """In a project the settings lie in the client's own folder, or in the project itself."""
    names = [Path(place).name for place in client.places]
    return [place for name in names for place in (folder / f".{client.name}" / name, folder / name)]


def is_trusted(client: Client, file: Path, environment: Mapping[str, str] = os.environ) -> bool:
    """Tells whether a client starts the programs that a file names: those of its own file, or of a trusted folder's."""
    home, place = client_home(client, environment).resolve(), file.resolve()
    if place.parent == home:
        return True
    told = {str(folder): decision for decision in ("untrusted", "trusted") for folder in _told_folders(home, decision)}
    return next((told[str(folder)] == "trusted" for folder in place.parents if str(folder) in told), False)


def _told_folders(home: Path, decision: str) -> list[object]:
    """The folders of which the user said so; of those around a file the innermost counts."""
    with contextlib.suppress(OSError, ValueError):
        named = tomllib.loads((home / TRUSTED).read_text()).get(decision, [])
        return named if isinstance(named, list) else []
    return []


def is_open(file: Path) -> bool:
    """Tells whether others on this machine may read a file."""
    return bool(file.stat().st_mode & OTHERS_READ)


def write_mended(file: Path, text: str) -> Path:
    """Puts a text in a file's place, which keeps its mode; returns the copy of what was there before.

    A link stays one. The new text is there whole or not at all.
    """
    place = file.resolve()
    fresh = place.with_name(f"{place.name}.new-{os.getpid()}")
    try:
        backup = _copy_aside(place)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        shutil.copymode(place, fresh)
        fresh.rename(place)
    except OSError as problem:
        fresh.unlink(missing_ok=True)
        raise StokerError(f"{place} could not be mended", why=f"{problem}; it is as it was") from problem
    return backup


def _copy_aside(place: Path) -> Path:
    """Returns a copy beside a file, named by the time; a second one within the same second gets a number."""
    name, number = f"{place.name}.before-{time.strftime('%Y%m%d-%H%M%S')}", 1
    while True:
        backup = place.with_name(name if number == 1 else f"{name}.{number}")
        with contextlib.suppress(FileExistsError), backup.open("xb") as out:
            shutil.copymode(place, backup)  # first: what it holds may be for nobody else
            out.write(place.read_bytes())
            return backup
        number += 1
