"""What boxes that share a model tell each other of their parts, and what people are shown of them."""

from __future__ import annotations

from typing import Annotated

import msgspec

from stoker.records.base import Record
from stoker.records.machine import Machine
from stoker.records.ranks import Executor, RankAsk
from stoker.records.service import State

LaunchName = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class RankFacts(Record, frozen=True):
    """What a box has for its part of a service: all ranks have to have the same engine, environment and model.

    `boxes` is how many its own table names, `revision` the digest of its model's files. `environment` says what the engine
    runs in: an image's digest, or the packages that decide what it computes. `places` are its interfaces with IPv4.
    """

    machine: Machine
    boxes: int
    engine: str
    version: str | None
    environment: str
    revision: str
    places: tuple[tuple[str, str], ...]
    executor: Executor = "mp"


class RankStart(Record, frozen=True):
    """Asks a box to start its part; `launch` tells this start of the head's from all others."""

    ask: RankAsk
    launch: LaunchName


class RankRenew(Record, frozen=True):
    """Says that the head still wants a part, and asks for its state once it is another than `seen`, at most `limit_s` later.

    `is_whole`: the head has had an answer of the whole model.
    """

    launch: LaunchName
    seen: State | None = None
    limit_s: Annotated[float, msgspec.Meta(ge=0, le=20)] = 0.0
    is_whole: bool = False


class RankView(Record, frozen=True):
    """One rank as its box tells it; `transport` is what NCCL said that it goes over, None where its log does not tell.

    `is_unwanted`: somebody has stopped it, and it has to stay down.
    """

    rank: int
    box: str
    state: State
    why: str
    launch: str
    memory_bytes: int | None = None
    transport: str | None = None
    is_unwanted: bool = False
