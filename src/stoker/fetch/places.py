"""Where a fetched file goes: into the hub's cache, as the hub's own library lays it out, or into a folder of yours.

Content is kept under its digest while it grows and is given its name only when it has been verified.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec

from stoker.errors import Refused
from stoker.facts.model.hub import PIN, read_pin
from stoker.fetch.listing import COMMIT, HubFile, Listing
from stoker.records import Pin

OWN = PIN.parts[0]


class Place(Protocol):
    """Where the files of one repository at one commit go."""

    @property
    def folder(self) -> Path:
        """What an engine loads."""

    def partial(self, file: HubFile) -> Path:
        """Where a file grows; what is there is taken up again."""

    def content(self, file: HubFile) -> Path:
        """Where a whole file's content is kept."""

    def lock(self, file: HubFile) -> Path:
        """The lock without which nobody touches the content."""

    def show(self, file: HubFile) -> None:
        """Gives verified content its name."""

    def finish(self) -> None:
        """Writes down what was fetched, once all of it is there."""


class CachePlace:
    """The hub's cache: content under its digest, and a snapshot of links for each commit, which is the pin."""

    def __init__(self, cache: Path, listing: Listing) -> None:
        name = f"models--{listing.repository.replace('/', '--')}"
        self.root, self.listing = cache / name, listing
        self.locks = cache / ".locks" / name

    @property
    def folder(self) -> Path:
        """The snapshot of the commit."""
        return self.root / "snapshots" / self.listing.revision

    def partial(self, file: HubFile) -> Path:
        """Beside the content; the name is ours, so that no other program appends to it."""
        return self.root / "blobs" / f"{file.digest}{OWN}.incomplete"

    def content(self, file: HubFile) -> Path:
        """The blob."""
        return self.root / "blobs" / file.digest

    def lock(self, file: HubFile) -> Path:
        """The lock that the hub's own library takes too."""
        return self.locks / f"{file.digest}.lock"

    def show(self, file: HubFile) -> None:
        """Links the snapshot's name to the blob."""
        link, content = self.folder / file.name, self.content(file)
        link.parent.mkdir(parents=True, exist_ok=True)
        write_link(link, Path(os.path.relpath(content, link.parent)))

    def finish(self) -> None:
        """Lets the branch or tag name this commit, last of all: an interrupted fetch leaves the former one in place."""
        if COMMIT.fullmatch(self.listing.asked):
            return
        reference = self.root / "refs" / self.listing.asked
        if self.root / "refs" in reference.resolve().parents:
            write_whole(reference, self.listing.revision.encode())


class FolderPlace:
    """A folder of yours: files under their own names, and a hidden folder with what is growing and where it is from."""

    def __init__(self, folder: Path, listing: Listing) -> None:
        self.own, self.listing = folder / OWN, listing
        self._folder = folder

    @property
    def folder(self) -> Path:
        """The folder itself."""
        return self._folder

    def check_ours(self) -> None:
        """Raises Refused where the folder holds files that no fetch of this repository brought: none is overwritten."""
        pin = read_pin(self._folder)
        if pin and pin.repository != self.listing.repository:
            why = f"it holds {pin.repository}"
        elif self._folder.is_dir() and not self.own.is_dir() and any(self._folder.iterdir()):
            why = "it holds files that Stoker did not fetch, and would overwrite"
        else:
            return
        raise Refused(f"{self._folder} cannot take {self.listing.repository}", why=why, next_step="name a new folder")

    def partial(self, file: HubFile) -> Path:
        """In the hidden folder."""
        return self.own / f"{file.digest}.incomplete"

    def content(self, file: HubFile) -> Path:
        """The file itself."""
        return self._folder / file.name

    def lock(self, file: HubFile) -> Path:
        """In the hidden folder."""
        return self.own / f"{file.digest}.lock"

    def show(self, file: HubFile) -> None:
        """Does nothing: it has its name."""

    def finish(self) -> None:
        """Writes down where the files are from."""
        write_pin(self._folder, Pin(self.listing.repository, self.listing.asked, self.listing.revision))


def write_pin(folder: Path, pin: Pin) -> None:
    """Writes beside fetched files where they are from."""
    write_whole(folder / PIN, msgspec.json.format(msgspec.json.encode(pin), indent=2))


def write_link(link: Path, target: Path) -> None:
    """Makes a link, or makes it anew where it points elsewhere."""
    if link.is_symlink() and link.readlink() == target:
        return
    fresh = link.with_name(f"{link.name}.{os.getpid()}.new")
    with suppress(FileNotFoundError):
        fresh.unlink()
    fresh.symlink_to(target)
    fresh.replace(link)


def write_whole(file: Path, content: bytes) -> None:
    """Writes a small file so that a reader finds the former or the new one, and never a half."""
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(f"{file.name}.{os.getpid()}.new")
    fresh.write_bytes(content)
    fresh.replace(file)
