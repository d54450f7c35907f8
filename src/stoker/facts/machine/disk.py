"""Reads the file systems on which the folders that matter lie."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import NamedTuple

from stoker.box import Box
from stoker.records import Disk

ESCAPED = re.compile(r"\\([0-7]{3})")  # how the kernel writes a space, a tab, a newline and a backslash
LEAST_FIELDS = 6


class MountPoint(NamedTuple):
    """Where a file system is mounted, of which kind it is, and what device it is on."""

    path: str
    kind: str
    device: str


def parse_mounts(text: str) -> list[MountPoint]:
    """Returns the lines of /proc/self/mountinfo; a line that has another form is left out."""
    found = []
    for line in text.splitlines():
        before, dash, after = line.partition(" - ")
        fields, source = before.split(), after.split()
        if dash and len(fields) >= LEAST_FIELDS and len(source) >= 2:
            found.append(MountPoint(_plain(fields[4]), source[0], _plain(source[1])))
    return found


def _plain(text: str) -> str:
    return ESCAPED.sub(lambda found: chr(int(found[1], 8)), text)


def find_mount(path: str, mounts: Iterable[MountPoint]) -> MountPoint | None:
    """Returns what a path lies on: the deepest mount above it, and of several on one place the last."""
    above = {str(parent) for parent in (PurePosixPath(path), *PurePosixPath(path).parents)}
    over = [mount for mount in mounts if mount.path in above]
    return max(reversed(over), key=lambda mount: len(mount.path), default=None)


def read_disks(box: Box, folders: Iterable[str]) -> tuple[Disk, ...]:
    """Returns the file systems of these folders, each once, with the folders that lie on it; links must be resolved."""
    mounts = parse_mounts(box.read("/proc/self/mountinfo") or "")
    holds: dict[MountPoint, list[str]] = {}
    for folder in dict.fromkeys(folders):
        if mount := find_mount(folder, mounts):
            holds.setdefault(mount, []).append(folder)
    return tuple(disk for mount, there in holds.items() if (disk := _read_disk(box, mount, tuple(there))))


def _read_disk(box: Box, mount: MountPoint, holds: tuple[str, ...]) -> Disk | None:
    found = box.disk_bytes(mount.path)
    return Disk(mount.path, *found, kind=mount.kind, device=mount.device, holds=holds) if found else None
