"""Other boxes: what is kept of a link to one, what a box says of itself over it, and what people are shown."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from stoker.records.base import Record
from stoker.records.plan import Abilities
from stoker.records.service import State

BoxName = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$")]
BOX_PORT = 8701
Outcome = Literal["changed", "unchanged", "failed"]


class BoxesSettings(Record, frozen=True):
    """The `[boxes]` table. `host` None: no other box's door reaches this one. `name` None: the machine's."""

    host: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = BOX_PORT
    name: BoxName | None = None


class Link(Record, frozen=True):
    """The way to another box: `pin` is the SHA-256 of its certificate, `key` what it knows this door by."""

    name: BoxName
    host: str
    port: int
    pin: str
    key: str
    may_act: bool


class LetIn(Record, frozen=True):
    """A door of another box that may come here; `digest` is that of its key, which nobody here keeps."""

    name: BoxName
    digest: str
    since: float
    may_act: bool


class KeptLinks(Record, frozen=True):
    """What the file of links holds."""

    boxes: tuple[Link, ...] = ()
    doors: tuple[LetIn, ...] = ()


class JoinCode(Record, frozen=True):
    """A code by which one other box's door may join, once, and how long it is good."""

    code: str
    good_s: float
    address: str
    may_act: bool


class CodeWish(Record, frozen=True):
    """What whoever joins by the code shall be allowed: `may_act` to start and stop services too."""

    may_act: bool = False


class BoxWish(Record, frozen=True):
    """A box to be joined, by a code that its owner gave."""

    name: BoxName
    url: str
    code: str


class JoinAsked(Record, frozen=True):
    """What a door sends to a box that it joins."""

    secret: str
    name: BoxName


class JoinGiven(Record, frozen=True):
    """What the box gives it: the key of the link."""

    key: str
    may_act: bool


class BoxService(Record, frozen=True):
    """A service as its own box tells it; how long it has been so is counted by that box, whatever clocks say."""

    service: str
    model: str
    state: State
    age_s: float
    why: str
    is_ready: bool
    retry_after_s: int
    context_tokens: int | None = None
    revision: str | None = None
    plan_id: str | None = None
    abilities: Abilities = Abilities()
    filters: tuple[str, ...] = ()


class BoxAlert(Record, frozen=True):
    """An alert that fires on a box, as other boxes are told of it."""

    id: str
    about: str
    severity: str
    title: str


class BoxHealth(Record, frozen=True):
    """How a box's machine does; None is unknown."""

    total_bytes: int | None = None
    available_bytes: int | None = None
    alerts: tuple[BoxAlert, ...] = ()


class BoxWord(Record, frozen=True):
    """What a box says every moment: its services where they changed, the tokens in flight at each, and how it does."""

    services: tuple[BoxService, ...] | None = None
    tokens: dict[str, int] = {}  # noqa: RUF012 - msgspec copies it
    health: BoxHealth | None = None


class Replica(Record, frozen=True):
    """One place where a model is served; `state` is AWAY where its box is."""

    box: str
    service: str
    state: str
    revision: str | None
    plan_id: str | None


class BoxView(Record, frozen=True):
    """Another box as people are shown it; `since` is when it was last seen to come or go, `health` None while it is away."""

    name: str
    address: str
    is_here: bool
    since: float
    why: str
    may_act: bool
    replicas: tuple[Replica, ...]
    health: BoxHealth | None = None


class DoorLetIn(Record, frozen=True):
    """Another box's door that may come here, as people are shown it."""

    name: str
    since: float
    may_act: bool
    is_here: bool


class RolledPlace(Record, frozen=True):
    """What became of one replica in a rolling change; `box` empty: this one. `after` None: nobody knows."""

    box: str
    service: str
    before: str
    after: str | None
    outcome: Outcome
    why: str


class BoxesView(Record, frozen=True):
    """All links of this box; `address` None: it lets no door in."""

    name: str
    address: str | None
    boxes: tuple[BoxView, ...]
    doors: tuple[DoorLetIn, ...]
