"""Proves an endpoint: one of our services through the gateway, or any address."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from stoker.config import Paths, read_config
from stoker.engines import find as find_engine
from stoker.errors import Refused, WrongUse
from stoker.flows.client import Daemon, find_daemon
from stoker.probes import find, names
from stoker.probes.kit.probe import Probe
from stoker.probes.kit.run import play_probes
from stoker.records import KeptVerification, Plan, ProbeResult, Record, ServiceView, Target, Verification
from stoker.store.services import read_saved
from stoker.store.verifications import bound, read_verifications, read_verified

QUICK_BUDGET_S = 60.0
DEEP_BUDGET_S = 900.0
LOOPBACK = ("127.0.0.1", "localhost", "::1")
Note = Callable[[ProbeResult], None]


class Address(Record, frozen=True):
    """An endpoint as the user names it; the keys are in files, since every user may read a command's words."""

    url: str | None
    model: str | None
    key_file: Path | None = None
    engine_url: str | None = None
    engine_key_file: Path | None = None


def choose_probes(named: Sequence[str], required: Sequence[str], deep: bool) -> list[Probe]:
    """Returns the probes named, else the default set, and those required; raises WrongUse where one does not exist."""
    for name in (*named, *required):
        find(name)
    known = [find(name) for name in names()]
    return [one for one in known if one.name in (*named, *required) or (not named and (deep or not one.deep))]


def target_of(address: Address) -> Target:
    """Returns an address as a target; raises WrongUse where it is none."""
    if address.url is None or address.model is None:
        raise WrongUse("--url and --model belong together", next_step="GET /v1/models lists the names that a server knows")
    return Target(
        url=_api_url(address.url),
        model=address.model,
        key=_read_key(address.key_file),
        engine_url=_api_url(address.engine_url).removesuffix("/v1") if address.engine_url else None,
        engine_key=_read_key(address.engine_key_file),
    )


def _api_url(url: str) -> str:
    """Returns an address with `/v1` at its end, as clients are given it."""
    if "@" in url:  # before anything repeats it
        raise WrongUse(
            "the address names a user or a password", next_step="put the key into a file and name it with --key-file"
        )
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as problem:
        raise WrongUse(f"`{url}` is no address", why=str(problem)) from problem
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise WrongUse(f"`{url}` is no address of an API", next_step="write it as http://HOST:PORT or https://HOST/v1")
    if parts.query or parts.fragment:
        raise WrongUse(
            "the address holds more than a place", next_step="put the key into a file and name it with --key-file"
        )
    plain = url.rstrip("/")
    return plain if plain.endswith("/v1") else f"{plain}/v1"


def _read_key(file: Path | None) -> str | None:
    if file is None:
        return None
    try:
        key = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise WrongUse(f"the key in {file} cannot be read", why=str(problem)) from problem
    if not key.isascii() or not key.isprintable() or " " in key or not key:
        raise WrongUse(f"{file} holds no key", why="a key is one line of printable ASCII letters")
    return key


def read_running(paths: Paths) -> Daemon:
    """Returns the running daemon; raises Refused where none runs."""
    daemon = find_daemon(paths)
    if daemon is None:
        raise Refused("the daemon is not running", next_step="`stoker up` starts it, --url proves any other address")
    return daemon


def choose_service(paths: Paths, name: str | None) -> ServiceView:
    """Returns a running service of ours, which needs no name where it is the only one; raises Refused where none runs."""
    return _choose(read_running(paths).status().services, name)


def target_of_service(paths: Paths, service: ServiceView) -> Target:
    """Returns a service of ours as its clients see it, through the gateway."""
    daemon = read_running(paths)
    engine_key = _read_key(paths.engine_key_file) if paths.engine_key_file.exists() else None
    gateway_host = read_config(paths.config).gateway.host
    plan = next((one.plan for one in read_saved(paths.database) if one.plan.service == service.name), None)
    return Target(
        url=f"{daemon.url}/v1", model=service.model, key=daemon.key,
        engine_url=service.address, engine_key=engine_key, parallel=planned(plan, "parallel"),
        on_purpose=gateway_host not in LOOPBACK,
    )  # fmt: skip


def _choose(services: Sequence[ServiceView], name: str | None) -> ServiceView:
    found = [one for one in services if one.address and one.answers and name in (None, one.name)]
    if len(found) == 1:
        return found[0]
    states = ", ".join(f"{one.name} ({one.state})" for one in services) or "none"
    raise Refused(
        f"{name} does not answer" if name else "name the service to prove",
        why=f"services here: {states}",
        next_step="" if found else "`stoker up` starts one, --url proves any other address",
    )


def planned(plan: Plan | None, neutral: str) -> int | None:
    """Returns a number of the plan, under its neutral name or the engine's; None where it says none."""
    if plan is None or not plan.is_engine:
        return None
    spelled = (neutral, *find_engine(plan.engine).spelling.get(neutral, ()))
    return next((int(one.value) for one in plan.settings if one.name in spelled and isinstance(one.value, int)), None)


def verify(target: Target, probes: Sequence[Probe], required: Sequence[str], budget_s: float, note: Note) -> Verification:
    """Returns everything that was found out; `note` is told each probe's result as it comes."""
    return asyncio.run(play_probes(target, probes, budget_s, frozenset(required), note))


def keep(paths: Paths, service: ServiceView, required: Sequence[str], view: Verification) -> None:
    """Has the daemon keep what was found out of a service of ours; raises StokerError where it does not."""
    kept = KeptVerification(
        service.name, service.plan_id, service.engine, service.engine_version, "verify", tuple(required), bound(view)
    )
    read_running(paths).keep_verification(kept)


def read_last(paths: Paths, service: str | None) -> KeptVerification:
    """Returns the last that its gate or a person found out of a service; without a name, of the one that was proved last."""
    known = read_verified(paths.database)
    if not known or (service is not None and service not in known):
        raise WrongUse(
            f"nothing is kept of {service or 'any service'}",
            why=f"kept are: {', '.join(known)}" if known else "no gate was asked yet, and no service of yours verified",
            next_step="`stoker up` asks the gate of what it starts, `stoker verify SERVICE` everything",
        )
    return read_verifications(paths.database, service or known[0], most=1)[0]
