"""The file of links: to which boxes this door goes, and which doors may come here."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from stoker.errors import StokerError, WrongUse
from stoker.records.boxes import KeptLinks, LetIn, Link


def read_links(file: Path) -> KeptLinks:
    """Returns what is kept; raises StokerError for a file that cannot be used, since to forget links would be worse."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=KeptLinks)
    except FileNotFoundError:
        return KeptLinks()
    except (OSError, msgspec.MsgspecError) as problem:
        raise StokerError(
            f"the links to other boxes in {file} cannot be read", why=str(problem),
            next_step="move the file away, and join the boxes anew",
        ) from problem  # fmt: skip


def write_links(file: Path, kept: KeptLinks) -> None:
    """Keeps the links, for this user alone; raises StokerError where that fails, as it would on a full disk."""
    fresh = file.with_suffix(".new")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            out.write(msgspec.json.encode(kept))
        fresh.replace(file)
    except OSError as problem:
        raise StokerError(f"the links to other boxes are not kept in {file}", why=str(problem)) from problem


def with_box(kept: KeptLinks, link: Link) -> KeptLinks:
    """Returns the links with one more box, or another way to a known one."""
    others = tuple(one for one in kept.boxes if one.name != link.name)
    return msgspec.structs.replace(kept, boxes=(*others, link))


def with_door(kept: KeptLinks, door: LetIn) -> KeptLinks:
    """Returns the links with one more door let in; one of its name before is let in no more."""
    others = tuple(one for one in kept.doors if one.name != door.name)
    return msgspec.structs.replace(kept, doors=(*others, door))


def find_link(kept: KeptLinks, name: str) -> Link:
    """Returns the way to a box; raises WrongUse with the names that are known."""
    found = next((one for one in kept.boxes if one.name == name), None)
    if found is None:
        known = ", ".join(sorted(one.name for one in kept.boxes)) or "none yet"
        raise WrongUse(f"there is no box called `{name}`", next_step=f"boxes here: {known}; `stoker boxes add` joins one")
    return found
