"""What a fetch of a model is told to do, and what came of it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from stoker.records.base import GIB, Record

Seconds = Annotated[float, msgspec.Meta(ge=0, le=7 * 24 * 3600)]
Address = Annotated[str, msgspec.Meta(pattern=r"^https?://[^\s/]+[^\s]*$")]


class FetchSettings(Record, frozen=True):
    """The `[fetch]` table; where None, Stoker decides and says what it decided and why."""

    endpoint: Address | None = None
    token_file: str | None = None
    xet: bool | None = None
    ipv4_only: bool | None = None
    workers: Annotated[int, msgspec.Meta(ge=1, le=32)] = 4
    connect_s: Seconds = 10.0
    stall_s: Seconds = 60.0
    patience_s: Seconds = 900.0
    tries: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 5
    keep_free_bytes: Annotated[int, msgspec.Meta(ge=0, le=2**62)] = GIB


class LeftOut(Record, frozen=True):
    """Files of a repository that were not fetched, and why no engine needs them."""

    why: str
    files: tuple[str, ...]
    size_bytes: int


class Completed(Record, frozen=True):
    """A file that the release lacks, and the repository and commit it was taken from."""

    name: str
    repository: str
    revision: str


class Fetched(Record, frozen=True):
    """One repository as it lies on disk; `revision` is the commit, `asked` the branch or tag that led to it.

    `path` is what engines load. `fetched_bytes` came over the network this time, the rest was there. `lacks` are names of
    files that the release does not have and that were not completed.
    """

    role: Literal["model", "draft"]
    repository: str
    asked: str
    revision: str
    path: str
    files: int
    size_bytes: int
    fetched_bytes: int = 0
    left_out: tuple[LeftOut, ...] = ()
    completed: tuple[Completed, ...] = ()
    lacks: tuple[str, ...] = ()
    loads_in: tuple[str, ...] = ()


class Pin(Record, frozen=True):
    """What is written beside fetched files that lie outside the hub's cache, so that they keep their origin."""

    repository: str
    asked: str
    revision: str
    completed: tuple[Completed, ...] = ()


class FetchView(Record, frozen=True):
    """Everything a fetch has to say; nothing was fetched where `is_dry_run`. `image` is the service's, if it has one."""

    models: tuple[Fetched, ...]
    notes: tuple[str, ...]
    need_bytes: int
    free_bytes: int | None
    folder: str
    is_dry_run: bool = False
    image: str | None = None
