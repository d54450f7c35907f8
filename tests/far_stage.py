"""A door whose service is another box's: the real listener of links stands between it and the engine, in one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from hashlib import sha256
from pathlib import Path

import msgspec

from door_stage import Engine, OneService, Stage, no_app
from stoker.flows.boxes.identity import make_server_tls, read_or_make_identity
from stoker.gateway.connection import Limits
from stoker.gateway.directory import Entry
from stoker.gateway.exchange import Exchange
from stoker.gateway.link_door import LinkDoor
from stoker.gateway.link_ring import LinkRing
from stoker.gateway.metrics import GatewayMetrics
from stoker.gateway.serving import Serving
from stoker.gateway.trunk.trunks import Address
from stoker.gateway.words import Words
from stoker.records.boxes import BoxHealth, JoinAsked, JoinGiven, LetIn

KEY, LINK, BOX = "sk-stoker-box-of-a-test", "the-door", "far"
LIMITS = Limits(32 * 2**20, 30.0, 30.0)


class Near(OneService):
    """What the far box serves, as it knows it itself."""

    def __init__(self, stage: FarStage) -> None:
        self._stage, self.model = stage, stage.model

    def entries(self) -> list[Entry]:
        return self._stage.near_entries()


class FarStage(Stage):
    """A stage on which all requests go over a link."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        super().__init__(engine, ())
        self.link_limits = LIMITS
        self._identity = folder / "box.pem"
        self._tasks: set[asyncio.Task[None]] = set()

    def near_entries(self) -> list[Entry]:
        """Returns the service as the far box has it."""
        return super().entries()

    def entries(self) -> list[Entry]:
        [near] = super().entries()
        assert near.endpoint is not None
        _, port, pin = self.link
        endpoint = msgspec.structs.replace(near.endpoint, port=port, key=KEY, box=BOX, pin=pin, reuses_connections=False)
        return [near._replace(endpoint=endpoint, box=BOX)]

    async def _begin(self) -> None:
        pin = read_or_make_identity(self._identity)
        near, ring, metrics = Near(self), LinkRing(), GatewayMetrics(list, "0")
        ring.load([LetIn(LINK, sha256(KEY.encode()).hexdigest(), 0.0, False)])
        serving = Serving(self.config, near, metrics, "engine", self._spawn)
        words = Words(near.entries, serving.tokens, BoxHealth)
        self.far = LinkDoor(ring, serving, words, no_app, _nobody, self.link_limits, self._spawn)
        self._server = await self.far.bind("127.0.0.1", 0, make_server_tls(self._identity))
        await self._server.start_serving()
        self.link: Address = ("127.0.0.1", self._server.sockets[0].getsockname()[1], pin)

    def _spawn(self, work: Coroutine[None, None, None], _: Exchange) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _close(self) -> None:
        await super()._close()
        self._server.close()
        self.far.cut_all()


def _nobody(asked: JoinAsked, peer: str) -> JoinGiven:
    raise AssertionError(asked)
