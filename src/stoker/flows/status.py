"""What is so, with a daemon or without one."""

from __future__ import annotations

import contextlib

import msgspec

from stoker.config import Paths
from stoker.errors import StokerError
from stoker.flows.client import Daemon, read_daemon
from stoker.flows.ownership import read_owner
from stoker.records import (
    WITHOUT_ENGINE,
    DaemonView,
    GatewayView,
    SavedService,
    ServiceView,
    State,
    StatusView,
)
from stoker.records.boxes import BoxesView

UNATTENDED = "no daemon attends to it; `stoker up` starts one, which takes the engine back"


def read_status(paths: Paths) -> StatusView:
    """Returns the status as the daemon tells it, or what its state folder tells where none answers."""
    with contextlib.suppress(StokerError):
        if daemon := read_daemon(paths):
            return msgspec.structs.replace(daemon.status(), boxes=_read_boxes(paths, daemon))
    owner = read_owner(paths)
    url = paths.address_file.read_text().strip() if paths.address_file.exists() else ""
    return StatusView(
        gateway=GatewayView(f"{url}/v1" if url else "", str(paths.key_file)),
        daemon=DaemonView(False, owner.pid if owner else None, owner.since if owner else None, None, None),
        services=_read_saved(paths),
    )


def _read_boxes(paths: Paths, daemon: Daemon) -> BoxesView | None:
    """Returns the links, of which no other box is told: `/api/status` is what they may ask for."""
    if not paths.links_file.exists():
        return None
    return daemon.boxes()


def _read_saved(paths: Paths) -> tuple[ServiceView, ...]:
    if not paths.database.exists():
        return ()
    from stoker.store.services import ServiceStore

    store = ServiceStore(paths.database)
    try:
        return tuple(_as_left(saved) for saved in store.read_all())
    finally:
        store.close()


def _as_left(saved: SavedService) -> ServiceView:
    from stoker.supervise.process import find_adopted

    plan, service, handle = saved.plan, saved.service, saved.handle
    process = find_adopted(handle) if handle else None
    lives = process is not None
    if process is not None:
        process.close()
    gone = not lives and service.state not in WITHOUT_ENGINE
    return ServiceView(
        name=plan.service, model=plan.model, engine=plan.engine, engine_version=plan.engine_version,
        state=State.STOPPED if gone else service.state, since=service.since,
        why="its engine ended while no daemon ran" if gone else UNATTENDED if lives else service.why,
        address=f"http://127.0.0.1:{handle.port}" if handle and lives else None,
        pid=handle.pid if handle and lives else None,
        memory_bytes=None, memory_need_bytes=plan.memory_need_bytes, restarts=len(service.restarts),
        plan_id=plan.plan_id, exit_code=service.code, card_need_bytes=plan.card_need_bytes,
    )  # fmt: skip
