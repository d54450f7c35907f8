"""What is known of how weights came from the disk into memory."""

from __future__ import annotations

from stoker.records.base import Record


class ReadAheadResult(Record, frozen=True):
    """What a read-ahead did and why it ended.

    `most_held_bytes` is the most of the page cache that it held at once: read for the loader and not used by it, or used
    and not dropped yet. `already_there_bytes` were in the page cache before it came to them, so it left them alone.
    `still_mapped_bytes` could not be dropped, since a process maps them.
    """

    ended: str
    read_bytes: int
    dropped_bytes: int
    already_there_bytes: int
    still_mapped_bytes: int
    most_held_bytes: int
    seconds: float
    troubles: tuple[str, ...] = ()


class LoadRate(Record, frozen=True):
    """How long an engine took for its weights, and what the disk could have given; None where that was not measured."""

    weights_bytes: int
    seconds: float
    disk_bytes_per_s: int | None
