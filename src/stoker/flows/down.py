"""Takes services down, or all of them and the daemon with them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import msgspec

from stoker.box import clock_s
from stoker.config import LimitsConfig, Paths
from stoker.errors import NotReadyInTime, Refused, StokerError, WrongUse, service_hint
from stoker.flows.client import Daemon
from stoker.flows.ownership import instance_of, own_state, read_owner
from stoker.records import RESTING, Service, ServiceView, State
from stoker.store.services import ServiceStore, read_saved
from stoker.store.switches import SwitchStore
from stoker.supervise.process import SERVERS_SHARE, Group, find_marked, stop_group
from stoker.supervise.runtimes.choose import choose_runtime

KILL_LIMIT_S = 10.0
DAEMON_LIMIT_S = 120.0
POLL_S = 0.02
ON_THE_WAY = (State.DRAINING, State.STOPPING, State.SETTLING, State.STOPPED, State.WEDGED)


def stop_service(daemon: Daemon, name: str) -> Iterator[ServiceView]:
    """Yields the service at each change of state until it rests; raises StokerError where its memory is not back."""
    view = daemon.down(name)
    while True:
        yield view
        if view.state is State.STOPPED:
            return
        if view.state is State.WEDGED:
            raise StokerError(f"{name} is {view.state}: {view.why}", next_step=f"try `stoker down {name}` again")
        view = daemon.wait(name, view.state)
        if view.state not in ON_THE_WAY:  # a start that was asked for just before, and came to the daemon just after
            view = daemon.down(name)


def stop_all(paths: Paths, daemon: Daemon) -> Iterator[ServiceView]:
    """Stops every service, whatever becomes of the others; raises StokerError at the end with those that did not stop."""
    faults: list[str] = []
    seen: set[str] = set()
    while left := _left(paths, daemon, seen):
        for name in left:
            seen.add(name)
            try:
                yield from stop_service(daemon, name)
            except StokerError as problem:
                faults.append(problem.what)
    if faults:
        raise StokerError("; ".join(faults), next_step="`stoker down` again; a reboot ends what the kernel holds")


def _left(paths: Paths, daemon: Daemon, seen: set[str]) -> list[str]:
    """Returns the services that were not stopped yet, or have come up since: a switch may have started them."""
    try:
        services = daemon.status().services
    except StokerError:  # what only shows must not keep anything from being stopped: their names are on the disk, too
        return [saved.plan.service for saved in read_saved(paths.database) if saved.plan.service not in seen]
    fresh = [one.name for one in services if one.name not in seen]
    return fresh or [one.name for one in services if one.state not in RESTING]


def stop_daemon(paths: Paths, daemon: Daemon) -> None:
    """Ends the daemon and waits until it has let go of its state folder."""
    daemon.stop()
    end = time.monotonic() + DAEMON_LIMIT_S
    while read_owner(paths) is not None:
        if time.monotonic() > end:
            raise NotReadyInTime(
                f"the daemon did not end within {DAEMON_LIMIT_S:.0f} s", next_step=f"read {paths.daemon_log}"
            )
        time.sleep(POLL_S)


def end_unattended(paths: Paths, service: str | None, limits: LimitsConfig) -> list[str]:
    """Ends engines that no daemon attends to, of one service or of all, and returns the names of those services.

    Raises Refused where a daemon holds the state folder without answering, StokerError where an engine outlives SIGKILL.
    """
    prefix = f"{instance_of(paths)}/{f'{service}/' if service else ''}"
    found = sorted({marker.split("/")[1] for _, marker in find_marked(prefix)})
    if not paths.state.exists():
        return []
    if owner := read_owner(paths):
        raise Refused(
            f"the daemon (pid {owner.pid}) holds {paths.state} and does not answer",
            why="it hangs, or was stopped (Ctrl-Z, a debugger)",
            next_step=f"`kill -9 {owner.pid}`, then `stoker down` again; its engines can be taken back by `stoker up` too",
        )
    with own_state(paths, "down"):
        left = asyncio.run(stop_group(Group(prefix), limits.stop_grace_s, KILL_LIMIT_S, SERVERS_SHARE))
        if left:
            raise StokerError(f"pid {', '.join(map(str, left))} outlived SIGKILL", why="the kernel or its driver holds it")
        found += asyncio.run(_end_unmarked(paths, service, limits))
        _save_stopped(paths, service)
    return found


async def _end_unmarked(paths: Paths, service: str | None, limits: LimitsConfig) -> list[str]:
    """Ends what carries no marker, and is found by its saved handle alone: units, and engines that were adopted."""
    ended = []
    for saved in read_saved(paths.database):
        plan = saved.plan
        if saved.handle is None or service not in (None, plan.service):
            continue
        log = paths.engine_log(plan.service)
        runtime = choose_runtime(plan, saved.handle, instance_of(paths), log, has_gpu=lambda: False)
        running = await runtime.find(saved.handle)
        if running is None and plan.ray is None:  # half of Ray may be gone, and its agents have lost their marker
            continue
        left = await runtime.stop(running, limits.stop_grace_s, KILL_LIMIT_S)
        if running is not None:
            running.close()
        if left:
            raise StokerError(f"{plan.service} is not down: {left}")
        ended.append(plan.service)
    return ended


def _save_stopped(paths: Paths, service: str | None) -> None:
    if not paths.database.exists():
        return
    store = ServiceStore(paths.database)
    models: dict[str, str | None] = {saved.plan.service: saved.plan.model for saved in store.read_all()}
    for saved in store.read_all():
        if service in (None, saved.plan.service):
            stopped = Service(State.STOPPED, clock_s(), "you asked for it", launch=saved.service.launch)
            store.write(msgspec.structs.replace(saved, service=stopped, handle=None))
    store.close()
    _forget_switch(paths, service)
    if service is not None and service not in models:
        hint = service_hint(service, models, f"services here: {', '.join(models) or 'none'}", "stoker down")
        raise WrongUse(f"there is no service called `{service}`", next_step=hint)


def _forget_switch(paths: Paths, service: str | None) -> None:
    """Sees to it that the next daemon does not go on with a switch that would start what was stopped."""
    store = SwitchStore(paths.database)
    saved = store.read()
    if saved is not None and service in (None, saved.plan.service, *saved.goes):
        store.write(None)
    store.close()
