"""Verifies services for whoever asks on the dashboard, as `stoker verify` does it: through the gateway, one at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import cache

import msgspec

from stoker.box import clock_s
from stoker.config import Paths
from stoker.errors import Refused, StokerError, WrongUse
from stoker.flows.targets import target_of_service
from stoker.flows.verify import DEEP_BUDGET_S, QUICK_BUDGET_S
from stoker.probes import find, names
from stoker.probes.kit.probe import Probe
from stoker.probes.kit.run import play_probes
from stoker.records import KeptVerification, ProbeResult, ServiceView, State, Verification
from stoker.records.looking import MatrixView, ProbeView, ProveWish, ProvingView, VerdictCell, VerdictRow
from stoker.store.verifications import read_verifications
from stoker.supervise.logs import PROBES_BEGIN, mark_probes

NOT_DONE, STOPPED = "not done", "stopped"
MOST_BUDGET_S = 3600.0
logger = logging.getLogger("stoker.daemon")


class Proving:
    """Has at most one verification under way; it lives in the daemon's tasks and ends with them."""

    def __init__(self, paths: Paths, keep: Callable[[KeptVerification], None]) -> None:
        self._paths, self._write = paths, keep
        self._tasks: asyncio.TaskGroup | None = None
        self._task: asyncio.Task[None] | None = None
        self.view: ProvingView | None = None

    def open(self, tasks: asyncio.TaskGroup) -> None:
        """Lets verifications be asked for."""
        self._tasks = tasks

    def close(self) -> None:
        """Ends the one under way, and begins no other."""
        self._tasks = None
        self.stop()

    def stop(self) -> ProvingView | None:
        """Ends the one under way; nothing of it is kept."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            self._end(STOPPED, "nothing of it is kept")
        return self.view

    def begin(self, service: ServiceView, wish: ProveWish, probes: list[Probe]) -> ProvingView:
        """Begins one; raises Refused where one is under way or the service does not answer, WrongUse for a foolish time."""
        if self.view is not None and self.view.outcome is None:
            raise Refused(f"{self.view.service} is being verified", next_step="wait until that is done, or stop it")
        if (why := cannot_be_asked(service)) or self._tasks is None:
            what = f"{service.name} cannot be verified: {why or 'the daemon ends'}"
            raise Refused(what, next_step="wait until it is READY, or `stoker up` starts it")
        budget_s = wish.budget_s or (DEEP_BUDGET_S if wish.deep else QUICK_BUDGET_S)
        if not 0 < budget_s <= MOST_BUDGET_S:
            raise WrongUse(f"{budget_s:g} s is no time to verify in", next_step=f"up to {MOST_BUDGET_S:.0f} s")
        self.view = ProvingView(service.name, clock_s(), budget_s, len(probes))
        self._task = self._tasks.create_task(self._play(service, probes, budget_s))
        return self.view

    async def _play(self, service: ServiceView, probes: list[Probe], budget_s: float) -> None:
        try:
            target = await asyncio.to_thread(target_of_service, self._paths, service)
            mark_probes(self._paths.engine_log(service.name), PROBES_BEGIN)
            found = await play_probes(target, probes, budget_s, frozenset(), _ignore, self._note)
            self._keep(service, found)
            self._end(found.verdict.value, "" if found.in_time else "the time was over before all was asked")
        except Exception as problem:  # noqa: BLE001 - whatever it is, the daemon goes on, and who asked is told
            logger.warning("service=%s not verified: %s", service.name, problem)
            self._end(NOT_DONE, str(problem))

    def _keep(self, service: ServiceView, found: Verification) -> None:
        kept = KeptVerification(service.name, service.plan_id, service.engine, service.engine_version, "verify", (), found)
        self._write(kept)

    def _note(self, probe: Probe) -> None:
        if self.view is not None:
            self.view = msgspec.structs.replace(self.view, number=self.view.number + 1, probe=probe.name)

    def _end(self, outcome: str, why: str) -> None:
        if self.view is not None:
            self.view = msgspec.structs.replace(self.view, outcome=outcome, why=why)


def cannot_be_asked(service: ServiceView) -> str:
    """Returns why a service cannot be verified now; nothing where it can."""
    if not service.answers:
        return "it answers no requests for tokens"
    return "" if service.state is State.READY and service.address else f"it is {service.state}"


def _ignore(result: ProbeResult) -> None:
    """Says nothing of a result: all are shown at the end."""


@cache
def _columns() -> tuple[ProbeView, ...]:
    probes = (find(name) for name in names())  # it imports their files
    return tuple(ProbeView(one.name, one.expects, one.means, one.deep) for one in probes)


def view_matrix(paths: Paths, services: Iterable[ServiceView], proving: ProvingView | None) -> MatrixView:
    """Returns what every probe found the last time that it was asked of every service."""
    return MatrixView(_columns(), tuple(_row(paths, one) for one in services), proving)


def _row(paths: Paths, service: ServiceView) -> VerdictRow:
    try:
        kept = read_verifications(paths.database, service.name)
    except StokerError:  # what is lost is not shown
        kept = []
    cells = _last_of_each(kept, service.plan_id)
    return VerdictRow(service.name, service.model, cannot_be_asked(service) or None, tuple(cells.values()))


def _last_of_each(kept: Iterable[KeptVerification], plan_id: str) -> Mapping[str, VerdictCell]:
    """Returns each probe's last verdict; `kept` has the last first."""
    cells: dict[str, VerdictCell] = {}
    for one in kept:
        for probe in one.verification.probes:
            cell = VerdictCell(probe.name, probe.verdict.value, one.verification.begun, one.occasion, one.plan_id == plan_id)
            cells.setdefault(probe.name, cell)
    return cells
