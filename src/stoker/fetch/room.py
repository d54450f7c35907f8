"""Counts what a fetch still needs, and refuses one for which the disk has no room."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from stoker.box import Box
from stoker.errors import Refused
from stoker.fetch.listing import HubFile
from stoker.fetch.places import Place
from stoker.records import say_bytes


class Need(NamedTuple):
    """Bytes of all files, those of them that are there, and those that the disk has to take."""

    all_bytes: int
    there_bytes: int

    @property
    def more_bytes(self) -> int:
        """What the disk has to take."""
        return self.all_bytes - self.there_bytes


def read_need(place: Place, files: Iterable[HubFile]) -> Need:
    """Looks what is there of the files; a content that several names share counts once."""
    own = list(files)
    each = {file.digest: file for file in own}.values() if _shares(place, own) else own
    return Need(sum(file.size_bytes for file in each), sum(_there(place, file) for file in each))


def _shares(place: Place, files: list[HubFile]) -> bool:
    return len({place.content(file) for file in files}) < len(files)


def _there(place: Place, file: HubFile) -> int:
    content = place.content(file)
    if content.exists():
        return file.size_bytes
    partial = place.partial(file)
    have_bytes = partial.stat().st_size if partial.exists() else 0
    return have_bytes if have_bytes <= file.size_bytes else 0


def read_free(box: Box, folder: Path) -> int | None:
    """Returns the free bytes of the disk on which a folder lies, or will lie."""
    there = next((above for above in (folder, *folder.parents) if above.exists()), folder)
    found = box.disk_bytes(str(there))
    return found[1] if found else None


def check_room(folder: Path, more_bytes: int, free_bytes: int | None, keep_free_bytes: int) -> None:
    """Raises Refused where the disk cannot take what is needed; an unknown disk is not judged."""
    if free_bytes is None or more_bytes == 0 or more_bytes + keep_free_bytes <= free_bytes:
        return
    raise Refused(
        f"{say_bytes(more_bytes)} are to be fetched into {folder}, and its disk has {say_bytes(free_bytes)} free",
        why=f"{say_bytes(keep_free_bytes)} stay free (`keep_free_bytes` of [fetch])",
        next_step="make room (`hf cache ls` shows what the hub's cache holds), or fetch --to a folder on another disk, or "
        "move the cache with HF_HUB_CACHE",
    )
