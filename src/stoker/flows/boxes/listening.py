"""This box among others while the daemon runs: listens for their doors, follows them, and counts them in metrics."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable, Iterator

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from stoker.config import Config, Paths
from stoker.errors import Refused
from stoker.flows.boxes.desk import BoxDesk
from stoker.flows.boxes.families import box_families
from stoker.flows.boxes.fleet import Fleet
from stoker.flows.boxes.identity import make_server_tls, read_or_make_identity
from stoker.flows.directory import Directory
from stoker.gateway.asgi import App
from stoker.gateway.connection import Limits
from stoker.gateway.door import Door
from stoker.gateway.hosts import reachable
from stoker.gateway.link_door import LinkDoor
from stoker.gateway.link_ring import LinkRing
from stoker.gateway.words import Words
from stoker.records.boxes import BoxHealth

NO_NAME = "box"


def name_of(config: Config) -> str:
    """Returns this box's name: its own in `[boxes]`, else the machine's."""
    if config.boxes.name is not None:
        return config.boxes.name
    plain = re.sub(r"[^a-z0-9._-]+", "-", socket.gethostname().partition(".")[0].lower()).strip("-._")
    return plain[:63] or NO_NAME


class Boxes(Collector):
    """The links of this daemon, from their beginning to their end."""

    def __init__(
        self,
        paths: Paths,
        config: Config,
        fleet: Fleet,
        desk: BoxDesk,
        ring: LinkRing,
        here: Directory,
        door: Door,
        app: App,
        health: Callable[[], BoxHealth],
    ) -> None:
        self._paths, self._settings = paths, config.boxes
        self._fleet, self._desk = fleet, desk
        gateway = config.gateway
        self._door = LinkDoor(
            ring, door.serving, Words(here.entries, door.serving.tokens, health), app, desk.let_in,
            Limits(gateway.body_limit_bytes, gateway.head_limit_s, gateway.body_limit_s), door.spawn,
        )  # fmt: skip
        desk.cut, desk.is_here = self._door.cut, self._door.is_here
        self._server: asyncio.Server | None = None

    async def bind(self) -> None:
        """Takes the address for other boxes' doors, where `[boxes]` names one; raises Refused where that cannot be."""
        host, port = self._settings.host, self._settings.port
        if host is None:
            return
        pin = read_or_make_identity(self._paths.box_identity)
        try:
            self._server = await self._door.bind(host, port, make_server_tls(self._paths.box_identity))
        except OSError as problem:
            raise Refused(
                f"other boxes' doors cannot be listened for on {host}:{port}", why=problem.strerror or str(problem),
                next_step="set [boxes] host to an address of this machine, and port to a free one",
            ) from problem  # fmt: skip
        bound, taken = self._server.sockets[0].getsockname()[:2]
        shown = socket.gethostname() if reachable(bound) != bound else bound
        self._desk.pin, self._desk.address = pin, f"https://{f'[{shown}]' if ':' in shown else shown}:{taken}"

    async def open(self, tasks: asyncio.TaskGroup) -> None:
        """Begins to answer other doors and to follow other boxes."""
        if self._server is not None:
            await self._server.start_serving()
        self._fleet.open(tasks, self._desk.kept.boxes)

    def close(self) -> None:
        """Takes no more, and follows nobody."""
        if self._server is not None:
            self._server.close()
        self._fleet.close()

    def cut_all(self) -> None:
        """Cuts what is left."""
        self._door.cut_all()

    def collect(self) -> Iterator[Metric]:
        """Yields the metrics of boxes; none where there are no others."""
        views = self._fleet.views()
        if views:
            yield from box_families(views, self._fleet.tokens())
