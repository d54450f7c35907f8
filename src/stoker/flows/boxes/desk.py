"""The daemon's uses around boxes: codes, joining, and the ends of links."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from hashlib import sha256

import msgspec

from stoker.box import clock_s
from stoker.config import Paths
from stoker.errors import Refused, WrongUse
from stoker.flows.boxes.codes import GOOD_S, Codes, render_code
from stoker.flows.boxes.fleet import Fleet
from stoker.flows.boxes.joining import join_box
from stoker.flows.boxes.link_file import find_link, read_links, with_box, with_door, write_links
from stoker.gateway.link_ring import LinkRing
from stoker.records.boxes import (
    BoxesView,
    BoxView,
    BoxWish,
    DoorLetIn,
    JoinAsked,
    JoinCode,
    JoinGiven,
    KeptLinks,
    LetIn,
)


class BoxDesk:
    """Keeps the links on disk, at the door and in the fleet alike. `pin` is this box's own, None where it lets nobody in."""

    def __init__(self, paths: Paths, fleet: Fleet, ring: LinkRing) -> None:
        self._paths = paths
        self._fleet = fleet
        self._ring = ring
        self._codes = Codes()
        self._turn = asyncio.Lock()
        self.kept = read_links(paths.links_file)
        ring.load(self.kept.doors)
        self.pin: str | None = None
        self.address: str | None = None
        self.cut: Callable[[str], int] = lambda name: 0
        self.is_here: Callable[[str], bool] = lambda name: False

    def code(self, *, may_act: bool) -> JoinCode:
        """Makes a join code; raises Refused where no other box's door could reach this one."""
        if self.pin is None or self.address is None:
            raise Refused(
                "this box lets no door of another box in",
                why="[boxes] host is not set in stoker.toml, so nothing listens for them",
                next_step="set [boxes] host to the address at which the other box reaches it, and start the daemon anew",
            )
        return JoinCode(render_code(self.pin, self._codes.make(may_act=may_act)), GOOD_S, self.address, may_act)

    def let_in(self, asked: JoinAsked, peer: str) -> JoinGiven:
        """Lets a door in that shows the code; raises Refused for a wrong one. It ends the link of its name before."""
        may_act = self._codes.take(asked.secret)
        key = f"sk-stoker-box-{secrets.token_urlsafe(32)}"
        door = LetIn(asked.name, sha256(key.encode()).hexdigest(), clock_s(), may_act)
        self._keep(with_door(self.kept, door))
        self.cut(asked.name)
        return JoinGiven(key, may_act)

    async def add(self, wish: BoxWish) -> BoxView:
        """Joins another box, and follows it from now on."""
        if any(one.name == wish.name for one in self.kept.boxes):
            raise Refused(
                f"there is a box called `{wish.name}` already",
                next_step=f"`stoker boxes remove {wish.name}`, or another name",
            )
        async with self._turn:
            link = await asyncio.to_thread(join_box, wish, self._fleet.name)
            self._keep(with_box(self.kept, link))
            self._fleet.add(link)
        return next(view for view in self._fleet.views() if view.name == wish.name)

    def remove(self, name: str) -> BoxesView:
        """Ends the link to a box of that name, and lets a door of that name in no more; raises WrongUse without either."""
        is_door = any(one.name == name for one in self.kept.doors)
        if not is_door:
            find_link(self.kept, name)
        boxes = tuple(one for one in self.kept.boxes if one.name != name)
        self._keep(
            msgspec.structs.replace(self.kept, boxes=boxes, doors=tuple(one for one in self.kept.doors if one.name != name))
        )
        self._fleet.drop(name)
        self.cut(name)
        return self.view()

    def find(self, box: str, service: str) -> None:
        """Raises WrongUse unless a linked box serves that."""
        find_link(self.kept, box)
        known = [one.service for view in self._fleet.views() if view.name == box for one in view.replicas]
        if service not in known:
            raise WrongUse(
                f"{box} has no service called `{service}`", next_step=f"its services: {', '.join(known) or 'none is known'}"
            )

    def _keep(self, kept: KeptLinks) -> None:
        write_links(self._paths.links_file, kept)  # first: what is not kept must not hold
        self.kept = kept
        self._ring.load(kept.doors)

    @property
    def own_name(self) -> str:
        """This box's name."""
        return self._fleet.name

    def view(self) -> BoxesView:
        """Returns all links, as people are shown them."""
        doors = tuple(DoorLetIn(one.name, one.since, one.may_act, self.is_here(one.name)) for one in self.kept.doors)
        return BoxesView(self._fleet.name, self.address, self._fleet.views(), doors)
