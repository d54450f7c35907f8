"""Puts the files that a release lacks beside it, in a folder that belongs to Stoker: the hub's cache is left as it is."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from stoker.facts.model.hub import is_hub_id, read_pin
from stoker.fetch.listing import HubFile, Listing
from stoker.fetch.places import OWN, FolderPlace, write_link, write_pin
from stoker.records import Completed, MissingFile, Model, Pin


def find_gaps(model: Model, repository: str) -> dict[str, list[MissingFile]]:
    """Returns what a model lacks and another repository may have, by that repository. Pure."""
    gaps: dict[str, list[MissingFile]] = {}
    for missing in model.missing:
        source = missing.take_from
        if source and source != repository and is_hub_id(source):
            gaps.setdefault(source, []).append(missing)
    return gaps


def choose_gap_files(listing: Listing, gaps: Iterable[MissingFile]) -> list[HubFile]:
    """Returns the files of the other repository that fill the gaps, as far as it has them. Pure."""
    wanted = {gap.name for gap in gaps}
    return [file for file in listing.files if file.name in wanted]


def completed_folder(root: Path, snapshot: Path) -> Path:
    """Returns where a snapshot is completed; laid out as the hub's cache is, so that the path tells what it holds. Pure."""
    return root / Path(*snapshot.parts[-3:])


def read_completed(folder: Path) -> tuple[Completed, ...]:
    """Returns the files with which a folder was completed before; none where one of them is gone."""
    pin = read_pin(folder)
    is_there = pin is not None and all((folder / one.name).is_file() for one in pin.completed)
    return pin.completed if pin and is_there else ()


def write_links(snapshot: Path, folder: Path) -> None:
    """Makes each file of a snapshot appear in the folder: the same file where the disk is the same, else a link to it.

    A hard link is seen inside containers too, where the cache may be somewhere else.
    """
    for file in sorted(snapshot.rglob("*")):
        if file.is_dir() or OWN in file.parts:
            continue
        name = folder / file.relative_to(snapshot)
        name.parent.mkdir(parents=True, exist_ok=True)
        _link(file.resolve(), name)


def _link(content: Path, name: Path) -> None:
    if name.exists() and name.samefile(content):
        return
    fresh = name.with_name(f"{name.name}.{os.getpid()}.new")
    fresh.unlink(missing_ok=True)
    try:
        fresh.hardlink_to(content)
    except OSError:  # another disk, or a file of somebody else
        write_link(name, content)
        return
    fresh.replace(name)
    fresh.unlink(missing_ok=True)  # two names of one file: `replace` leaves both


def write_completed(place: FolderPlace, listing: Listing, completed: tuple[Completed, ...]) -> None:
    """Writes down where the release and the added files are from."""
    earlier = read_pin(place.folder)
    names = {one.name for one in completed}
    kept = tuple(one for one in earlier.completed if one.name not in names) if earlier else ()
    write_pin(place.folder, Pin(listing.repository, listing.asked, listing.revision, (*kept, *completed)))
