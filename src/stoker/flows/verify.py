"""Proves an endpoint: asks it what clients will ask, and says what was found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from stoker.config import Paths
from stoker.errors import WrongUse
from stoker.flows.targets import read_running
from stoker.probes import find, names
from stoker.probes.kit.probe import Probe
from stoker.probes.kit.run import play_probes
from stoker.records import KeptVerification, ProbeResult, ServiceView, Target, Verification
from stoker.store.verifications import bound, read_verifications, read_verified
from stoker.supervise.logs import PROBES_BEGIN, mark_probes

QUICK_BUDGET_S = 60.0
DEEP_BUDGET_S = 900.0
Note = Callable[[ProbeResult], None]


def choose_probes(named: Sequence[str], required: Sequence[str], deep: bool) -> list[Probe]:
    """Returns the probes named, else the default set, and those required; raises WrongUse where one does not exist."""
    for name in (*named, *required):
        find(name)
    known = [find(name) for name in names()]
    return [one for one in known if one.name in (*named, *required) or (not named and (deep or not one.deep))]


def verify(target: Target, probes: Sequence[Probe], required: Sequence[str], budget_s: float, note: Note) -> Verification:
    """Returns everything that was found out; `note` is told each probe's result as it comes."""
    return asyncio.run(play_probes(target, probes, budget_s, frozenset(required), note))


def begin(paths: Paths, service: ServiceView) -> None:
    """Says in the log of an engine of ours that what it is asked from now on may be to be refused."""
    mark_probes(paths.engine_log(service.name), PROBES_BEGIN)


def keep(paths: Paths, service: ServiceView, required: Sequence[str], view: Verification) -> None:
    """Has this box's daemon keep what was found out of a service, a linked box's as NAME@BOX; raises StokerError."""
    kept = KeptVerification(
        _name(service.name, view.box),
        service.plan_id,
        service.engine,
        service.engine_version,
        "verify",
        tuple(required),
        bound(view),
    )
    read_running(paths).keep_verification(kept)


def read_last(paths: Paths, service: str | None, box: str | None = None) -> KeptVerification:
    """Returns the last that its gate or a person found out of a service; without a name, of the one that was proved last."""
    known = [one for one in read_verified(paths.database) if box is None or one.endswith(f"@{box}")]
    service = service and _name(service, box)
    if not known or (service is not None and service not in known):
        raise WrongUse(
            f"nothing is kept of {service or 'any service'}",
            why=f"kept are: {', '.join(known)}" if known else "no gate was asked yet, and no service of yours verified",
            next_step="`stoker up` asks the gate of what it starts, `stoker verify SERVICE` everything",
        )
    return read_verifications(paths.database, service or known[0], most=1)[0]


def _name(service: str, box: str | None) -> str:
    return service if box is None else f"{service}@{box}"
