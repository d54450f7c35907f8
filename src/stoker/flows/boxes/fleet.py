"""All boxes that this door knows: follows each of them, and joins what they serve with what is served here."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from stoker.config import Paths
from stoker.errors import StokerError
from stoker.flows.boxes.choosing import as_replica
from stoker.flows.boxes.remote import RemoteBox
from stoker.gateway.directory import Entry
from stoker.gateway.serving import Serving
from stoker.records import QueueLimits
from stoker.records.boxes import BoxService, BoxView, Link

logger = logging.getLogger("stoker.daemon")


class Fleet:
    """The linked boxes by name. Nothing of it waits for a disk, but what `open` does before requests come."""

    def __init__(self, paths: Paths, name: str, limits: QueueLimits, serving: Callable[[], Serving]) -> None:
        self._paths = paths
        self.name = name
        self._limits = limits
        self._serving = serving
        self.boxes: dict[str, RemoteBox] = {}
        self.entries: dict[str, Entry] = {}
        self.by_model: dict[str, list[Entry]] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._following: dict[str, asyncio.Task[None]] = {}
        self._seen: dict[str, object] = {}

    def open(self, tasks: asyncio.TaskGroup, links: tuple[Link, ...]) -> None:
        """Begins to follow the boxes."""
        self._tasks = tasks
        for link in links:
            self.add(link)

    def close(self) -> None:
        """Follows nobody any more."""
        for task in self._following.values():
            task.cancel()
        self._tasks = None

    def add(self, link: Link) -> None:
        """Follows one more box, or a known one on another way."""
        self.drop(link.name)
        self._serving().name_box(self.name)
        box = RemoteBox(link, self._limits, _read_seen(self._paths.box_seen(link.name)), self._changed, self._went)
        self.boxes[link.name] = box
        self._join()
        if self._tasks is not None:
            self._following[link.name] = self._tasks.create_task(box.follow())

    def drop(self, name: str) -> None:
        """Knows a box no more; what it answers just now ends with an error."""
        if task := self._following.pop(name, None):
            task.cancel()
        box = self.boxes.pop(name, None)
        if box is not None:
            self._end_all(box, f"The link to the box {name} was removed.")
            self._join()
            self._seen.pop(name, None)
            for service in box.entries:
                self._serving().forget(service)
            with contextlib.suppress(OSError):
                self._paths.box_seen(name).unlink(missing_ok=True)

    def load(self, entry: Entry) -> int:
        """Returns about how many tokens are in flight at a replica: this door's exactly, others' as its box last said."""
        ours = self._serving().tokens(entry.service)
        box = self.boxes.get(entry.box)
        return ours if box is None else max(ours, box.tokens.get(entry.service.partition("@")[0], 0))

    def tokens(self) -> Iterator[tuple[str, str, int]]:
        """Yields box, service and the tokens in flight there, of boxes that are heard."""
        for name, box in self.boxes.items():
            yield from ((name, service, count) for service, count in box.tokens.items())

    def views(self) -> tuple[BoxView, ...]:
        """Returns the boxes as people are shown them."""
        return tuple(map(_view, self.boxes.values()))

    def _changed(self, box: RemoteBox) -> None:
        self._join()
        if box.is_here:
            logger.info("box=%s is here, with %d services", box.link.name, len(box.services))
        seen = [(one.service, one.model, one.revision, one.plan_id) for one in box.services]
        if box.is_here and self._seen.get(box.link.name) != seen and self._tasks is not None:
            self._seen[box.link.name] = seen
            self._tasks.create_task(asyncio.to_thread(_write_seen, self._paths.box_seen(box.link.name), box.services))

    def _went(self, box: RemoteBox) -> None:
        logger.warning("box=%s is away: %s", box.link.name, box.why)
        self._end_all(box, f"The box {box.link.name} is away: {box.why}.")

    def _end_all(self, box: RemoteBox, message: str) -> None:
        for service in box.entries:
            self._serving().end_all(service, "box_away", message)

    def _join(self) -> None:
        self.entries = {name: entry for box in self.boxes.values() for name, entry in box.entries.items()}
        self.by_model = {}
        for entry in self.entries.values():
            self.by_model.setdefault(entry.model, []).append(entry)


def _view(box: RemoteBox) -> BoxView:
    link, replicas = box.link, tuple(map(as_replica, box.entries.values()))
    address = f"{link.host}:{link.port}"
    return BoxView(link.name, address, box.is_here, box.since, box.why, link.may_act, replicas, box.health)


def _read_seen(file: Path) -> tuple[BoxService, ...]:
    """Returns what a box served when it was last heard, so that its models are known while it is away."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=tuple[BoxService, ...])
    except (OSError, msgspec.MsgspecError):
        return ()


def _write_seen(file: Path, services: tuple[BoxService, ...]) -> None:
    try:
        file.parent.mkdir(mode=0o700, exist_ok=True)
        fresh = file.with_suffix(".new")
        fresh.write_bytes(msgspec.json.encode(services))
        fresh.replace(file)
    except (OSError, StokerError) as problem:
        logger.warning("what %s serves is not kept for a next daemon: %s", file.stem, problem)
