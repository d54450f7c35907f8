"""Finds the running service of ours that a command asks."""

from __future__ import annotations

from collections.abc import Sequence

from stoker.config import Paths, read_config
from stoker.engines import find as find_engine
from stoker.errors import Refused, service_hint
from stoker.flows.addresses import read_key
from stoker.flows.client import Daemon, find_daemon
from stoker.records import Plan, ServiceView, Target
from stoker.store.services import read_saved

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def read_running(paths: Paths) -> Daemon:
    """Returns the running daemon; raises Refused where none runs."""
    daemon = find_daemon(paths)
    if daemon is None:
        raise Refused("the daemon is not running", next_step="`stoker up` starts it, --url asks any other address")
    return daemon


def choose_service(paths: Paths, name: str | None) -> ServiceView:
    """Returns a running service of ours, which needs no name where it is the only one; raises Refused where none runs."""
    return choose_of(read_running(paths).status().services, name)


def target_of_service(paths: Paths, service: ServiceView) -> Target:
    """Returns a service of ours as its clients see it, through the gateway."""
    daemon = read_running(paths)
    engine_key = read_key(paths.engine_key_file) if paths.engine_key_file.exists() else None
    gateway_host = read_config(paths.config).gateway.host
    plan = next((one.plan for one in read_saved(paths.database) if one.plan.service == service.name), None)
    return Target(
        url=f"{daemon.url}/v1", model=service.model, key=daemon.key,
        engine_url=service.address, engine_key=engine_key, parallel=planned(plan, "parallel"),
        on_purpose=gateway_host not in LOOPBACK,
    )  # fmt: skip


def choose_of(services: Sequence[ServiceView], name: str | None, box: str = "") -> ServiceView:
    """Returns the one that is meant and answers; raises Refused. `box` names another one than this."""
    found = [one for one in services if one.address and one.answers and name in (None, one.name)]
    if len(found) == 1:
        return found[0]
    start = f"stoker up SERVICE --on {box}" if box else "stoker up"
    states = ", ".join(f"{one.name} ({one.state})" for one in services) or "none"
    is_known = name in {one.name for one in services}
    raise Refused(
        f"{name} does not answer" if is_known else f"there is no service called `{name}`" if name else "name the service",
        why=f"services {f'of {box}' if box else 'here'}: {states}",
        next_step="" if found else _who_is_meant(services, name, f"`{start}` starts one, --url asks any other address"),
    )


def _who_is_meant(services: Sequence[ServiceView], name: str | None, otherwise: str) -> str:
    known = {one.name: one.model for one in services}
    return otherwise if name is None or name in known else service_hint(name, known, otherwise)


def planned(plan: Plan | None, neutral: str) -> int | None:
    """Returns a number of the plan, under its neutral name or the engine's; None where it says none."""
    if plan is None or not plan.is_engine:
        return None
    spelled = (neutral, *find_engine(plan.engine).spelling.get(neutral, ()))
    return next((int(one.value) for one in plan.settings if one.name in spelled and isinstance(one.value, int)), None)
