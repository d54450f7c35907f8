"""What runs now, and the memory that would come back if it stopped."""

from __future__ import annotations

from stoker.config import Paths
from stoker.errors import StokerError
from stoker.flows.client import find_daemon
from stoker.plan.room import Claim
from stoker.records import WITHOUT_ENGINE, ServiceView


def read_claims(paths: Paths) -> tuple[Claim, ...]:
    """Returns the services that hold memory: as measured, else as planned; empty where no daemon answers."""
    daemon = find_daemon(paths)
    if daemon is None:
        return ()
    try:
        services = daemon.status().services
    except StokerError:
        return ()
    return tuple(
        Claim(one.name, _held_bytes(one), one.card_need_bytes) for one in services if one.state not in WITHOUT_ENGINE
    )


def _held_bytes(view: ServiceView) -> int:
    """What of a service lies on a card of its own shows up in no process's resident size."""
    if view.card_need_bytes:
        return view.memory_need_bytes
    return view.memory_bytes or view.memory_need_bytes
