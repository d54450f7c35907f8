"""What goes on beside a service's jobs: its memory is looked at, and whether it still does something about its requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from stoker.records import BEING_STARTED, WITHOUT_ENGINE, Endpoint, Service
from stoker.supervise.freeze import FreezeCheck
from stoker.supervise.hands import Hands
from stoker.supervise.machine import Event, Frozen

SAMPLE_S, CLOSE_SAMPLE_S = 0.25, 0.025  # an engine can take gigabytes in a second
FREEZE_POLL_S = 2.0


class Watched(Protocol):
    """What is watched: a service's owner."""

    service: Service

    @property
    def endpoint(self) -> Endpoint | None:
        """Where clients are answered; None unless READY."""

    def post(self, event: Event) -> None:
        """Takes an event."""

    async def await_change(self, limit_s: float | None) -> None:
        """Returns at the next change of state, or when the limit is over, if there is one."""


W = TypeVar("W", bound=Watched)


async def watch_memory(owner: W, hands: Hands, may_go: Callable[[W], bool]) -> None:
    """Looks at the memory and the log while an engine runs, more often the less is left."""
    while True:
        if hands.running is not None and (event := hands.look(owner.service, may_go(owner))):
            owner.post(event)
        await owner.await_change(_pause_s(owner.service, hands))


def _pause_s(service: Service, hands: Hands) -> float | None:
    # One that rests has nothing to be looked at until it is asked for: 500 of them took 6 % of a core by waking up for it.
    if hands.running is None and service.state in WITHOUT_ENGINE:
        return None
    return CLOSE_SAMPLE_S if service.state in BEING_STARTED or hands.is_near else SAMPLE_S


async def watch_for_a_freeze(owner: Watched, hands: Hands) -> None:
    """Looks whether anything moves while there are requests."""
    tools, name = hands.tools, hands.plan.service
    check, before_s = FreezeCheck(tools.limits.frozen_s), 0.0
    while True:
        if owner.endpoint is None:  # nobody is answered before the next change
            check.judge(time.monotonic(), 0, None)
            await owner.await_change(None)
            continue
        endpoint = owner.endpoint if hands.plan.answers else None
        requests, heard_s = tools.in_flight(name) if endpoint else 0, tools.heard_at(name)
        # Metrics are a hundred kilobytes to make and to read: an engine is asked for them only while it says nothing.
        is_silent, before_s = heard_s == before_s, heard_s
        counters = await tools.read_counters(endpoint) if endpoint and requests and is_silent else None
        why = check.judge(time.monotonic(), requests, (heard_s, counters))
        if why and owner.endpoint:
            owner.post(Frozen(time.time(), f"it froze: {why}"))
        await asyncio.sleep(FREEZE_POLL_S)
