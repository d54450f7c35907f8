"""What runs now, and the memory that would come back if it stopped."""

from __future__ import annotations

from stoker.config import Paths
from stoker.errors import StokerError
from stoker.flows.client import find_daemon
from stoker.plan.room import Claim
from stoker.records import WITHOUT_ENGINE


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
        Claim(one.name, one.memory_bytes or one.memory_need_bytes) for one in services if one.state not in WITHOUT_ENGINE
    )
