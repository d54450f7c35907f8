"""Completes a release that lacks files from the repository it was made from, if the person agrees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from stoker.errors import StokerError
from stoker.facts.model.read import read_model
from stoker.fetch.completing import (
    choose_gap_files,
    completed_folder,
    find_gaps,
    read_completed,
    write_completed,
    write_links,
)
from stoker.fetch.listing import DEFAULT_REVISION, HubFile, Listing
from stoker.fetch.meter import Meter
from stoker.fetch.places import FolderPlace
from stoker.fetch.transfer import Job, fetch_file
from stoker.fetch.wire import Wire
from stoker.records import Completed, MissingFile

Consent = Callable[[str], bool | None]


class Done(NamedTuple):
    """Where the model is to be loaded from, what was added, and what could have been and was not."""

    path: Path
    completed: tuple[Completed, ...] = ()
    lacks: tuple[str, ...] = ()


class Ask(NamedTuple):
    """One fetched release and how to complete it; without a `root` files are added in its own folder."""

    wire: Wire
    listing: Listing
    path: Path
    root: Path | None
    consent: Consent


def complete(wire: Wire, listing: Listing, path: Path, root: Path | None, consent: Consent) -> tuple[Done, list[str]]:
    """Returns where the complete model is, with notes for the person; a GGUF lacks nothing that could be added."""
    if path.is_file():
        return Done(path), []
    wire.patience.stop.clear()  # the team that fetched the release has ended
    ask = Ask(wire, listing, path, root, consent)
    folder = completed_folder(root, path) if root else path
    done, notes = _earlier(path, folder), list[str]()
    for source, gaps in find_gaps(read_model(done.path), listing.repository).items():
        done, more = _fill(ask, source, gaps, done, folder)
        notes += more
    still = (missing for missing in read_model(done.path).missing if missing.name not in done.lacks)
    return done, [*notes, *(f"{missing.name} is missing, and no repository is known to have it" for missing in still)]


def _earlier(path: Path, folder: Path) -> Done:
    """Returns what an earlier fetch completed, with the release's files as they are now."""
    earlier = read_completed(folder)
    if earlier and folder != path:
        write_links(path, folder)
    return Done(folder if earlier else path, earlier)


def _fill(ask: Ask, source: str, gaps: list[MissingFile], done: Done, folder: Path) -> tuple[Done, list[str]]:
    try:
        base = ask.wire.list_files(source, DEFAULT_REVISION)
    except StokerError as problem:
        return done._replace(lacks=(*done.lacks, *(gap.name for gap in gaps))), [_unreachable(gaps, source, problem)]
    files = choose_gap_files(base, gaps)
    if not files:
        return done, []
    if not ask.consent(_question(ask, source, files, gaps)):
        lacks = (*done.lacks, *_names(files))
        return done._replace(lacks=lacks), [_declined(ask, source, files)]
    added = _add(ask, base, files, folder)
    where = f"; {folder} holds them beside the release's own files, and the hub's cache is as it was" if ask.root else ""
    note = f"{', '.join(_names(files))} taken from {source} at {base.revision[:12]}{where}"
    return Done(folder, (*done.completed, *added), done.lacks), [note]


def _add(ask: Ask, base: Listing, files: list[HubFile], folder: Path) -> tuple[Completed, ...]:
    place = FolderPlace(folder, base)
    size_bytes = sum(file.size_bytes for file in files)
    if ask.root:
        write_links(ask.path, folder)
    for file in files:
        fetch_file(Job(ask.wire, base, place, Meter(size_bytes, size_bytes)), file)
    added = tuple(Completed(file.name, base.repository, base.revision) for file in files)
    write_completed(place, ask.listing, added)
    return added


def _names(files: list[HubFile]) -> list[str]:
    return [file.name for file in files]


def _question(ask: Ask, source: str, files: list[HubFile], gaps: list[MissingFile]) -> str:
    guess = " (a guess from the name)" if any(gap.is_guess for gap in gaps) else ""
    return f"{ask.listing.repository} lacks {', '.join(_names(files))}. Take them from {source}{guess}?"


def _declined(ask: Ask, source: str, files: list[HubFile]) -> str:
    return (
        f"{ask.listing.repository} lacks {', '.join(_names(files))}, which {source} has; "
        f"`stoker fetch {ask.listing.repository} --yes` takes them from there"
    )


def _unreachable(gaps: list[MissingFile], source: str, problem: StokerError) -> str:
    names = ", ".join(gap.name for gap in gaps)
    return f"{names} should come from {source}, which failed: {problem}"
