"""What the gateway does with the requests for a service; nothing of it reaches an engine, or a plan."""

from __future__ import annotations

from typing import Annotated

import msgspec

from stoker.records.base import Record
from stoker.records.workflow import Limit

ANY = "*"
Running = Annotated[int, msgspec.Meta(ge=1, le=100_000)]
Waiting = Annotated[int, msgspec.Meta(ge=0, le=100_000)]
Tokens = Annotated[int, msgspec.Meta(ge=1, le=2**40)]
Wait = Annotated[float, msgspec.Meta(ge=0, le=24 * 3600)]


class DoorSettings(Record, frozen=True):
    """The keys of a `[service.NAME]` table that are for the gateway; None: as `[gateway]` says, or, of `idle_s`, never.

    `on_demand`: a request that names it starts it. `idle_s`: it is stopped when nothing was asked of it for so long.
    `tokens_in_flight`: how many tokens its requests may read and write together, by an estimate; None: no limit.
    """

    on_demand: bool = False
    idle_s: Limit | None = None
    running: Running | None = None
    waiting: Waiting | None = None
    wait_s: Wait | None = None
    tokens_in_flight: Tokens | None = None


class DoorView(Record, frozen=True):
    """How a service comes and goes by itself: whether a request starts it, and after how long without one it stops."""

    service: str
    on_demand: bool
    idle_s: float | None


class QueueLimits(Record, frozen=True):
    """How many requests a service answers at once (None: as many as its engine does), and how many wait, for how long.

    `tokens` limits what those that run may read and write together, by an estimate.
    """

    running: int | None
    waiting: int
    wait_s: float
    tokens: int | None = None
