"""Everything that is watched, in one place: samples in, what is wrong out. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stoker.records import Memory, UsageRecord
from stoker.watch.canaries import DRAFT_FAULTS, CanaryCheck
from stoker.watch.contents import ContentRates
from stoker.watch.disks import DisksCheck
from stoker.watch.engine import EngineCheck
from stoker.watch.gpus import GpusCheck
from stoker.watch.memory import MemoryCheck, judge_holding
from stoker.watch.requests import RequestCheck, ended
from stoker.watch.samples import EngineSample, MachineSample
from stoker.watch.table import Looked, threshold

Kept = Mapping[str, Sequence[Sequence[float]]]
CANARIES, STREAMS = "canaries", "streams"  # in the place of a method, of which none is called so


class Watcher:
    """The checks of all services and of the machine; `kept` is what was learnt before, by service and method."""

    def __init__(self, floor_bytes: int, kept: Kept) -> None:
        self._kept: dict[str, Sequence[Sequence[float]]] = dict(kept)
        self._memory, self._gpus, self._disks = MemoryCheck(floor_bytes), GpusCheck(), DisksCheck()
        self._engines: dict[str, EngineCheck] = {}
        self._requests: dict[str, RequestCheck] = {}
        self._canaries: dict[str, CanaryCheck] = {}
        self._contents: dict[str, ContentRates] = {}
        self._doubted_s: dict[str, float] = {}

    def engine(self, service: str, method: str) -> EngineCheck:
        """Returns the check of a service; another method of speculation has another band."""
        check = self._engines.get(service)
        if check is None or check.method != method:
            if check is not None:
                self._kept[_name(service, check.method)] = check.drafts.keep()
            check = self._engines[service] = EngineCheck(service, method)
            check.drafts.restore(self._kept.get(_name(service, method), ()))
        return check

    def requests(self, service: str) -> RequestCheck:
        """Returns the check of a service's requests."""
        check = self._requests.get(service)
        if check is None:
            check = self._requests[service] = RequestCheck(service)
            check.restore(self._kept.get(_name(service, STREAMS), ()))
        return check

    def canaries(self, service: str, plan_id: str) -> CanaryCheck:
        """Returns the check of a service's canary prompts; another plan answers in a way of its own."""
        check = self._canaries.get(service)
        if check is None or check.plan_id != plan_id:
            check = self._canaries[service] = CanaryCheck(service, plan_id)
            check.restore(self._kept.get(_name(service, CANARIES), ()))
        return check

    def contents(self, service: str) -> ContentRates:
        """Returns what a service's drafts are worth by content."""
        return self._contents.setdefault(service, ContentRates())

    def doubted_since_s(self, service: str) -> float | None:
        """Returns since when a service's drafts are taken for worse; None where they are not."""
        return self._doubted_s.get(service)

    def note(self, at_s: float, record: UsageRecord, left: bool) -> None:
        """Takes a request that ended, and whether its client left before."""
        if record.service:
            self.requests(record.service).take(ended(at_s, record, left))

    def look_at_engine(self, service: str, method: str, sample: EngineSample, silent_s: float) -> Looked:
        """Returns what is wrong with a service that is READY, and with its requests."""
        check = self.engine(service, method)
        check.forget_gap(sample.at_s)
        looked = self._reconsider(service, check.look(sample, silent_s), sample.at_s)
        canaries = self._canaries.get(service)
        return looked | self.requests(service).look(sample.at_s) | ({} if canaries is None else canaries.look())

    def _reconsider(self, service: str, looked: Looked, at_s: float) -> Looked:
        """Asks the canary prompts where drafts are taken for worse."""
        if any(looked.get((alert, service)) for alert in DRAFT_FAULTS):
            since_s = self._doubted_s.setdefault(service, at_s)
            canaries = self._canaries.get(service)
            return looked if canaries is None else canaries.reconsider(looked, since_s)
        if (DRAFT_FAULTS[0], service) in looked:
            self._doubted_s.pop(service, None)
        return looked

    def look_away(self, service: str) -> Looked:
        """Returns what cannot be so of a service that is not READY."""
        check = self._engines.get(service)
        return {} if check is None else check.look_away()

    def look_at_machine(self, sample: MachineSample, is_waited_for: bool) -> Looked:
        """Returns what is wrong with memory, GPUs and disks."""
        looked: Looked = {}
        if sample.memory is not None:
            looked |= self._memory.look(sample.at_s, sample.memory, is_waited_for)
        return looked | self._gpus.look(sample.at_s, sample.gpus) | self._disks.look(sample.at_s, sample.disks)

    def look_at_life(self, service: str, restarts: int, is_down: str) -> Looked:
        """Returns whether a service dies often, or is down and stays so; `is_down` says why."""
        often = f"it was restarted {restarts} times" if restarts >= threshold("service-restarted") else None
        return {("service-restarted", service): often, ("service-down", service): is_down or None}

    def look_at_start(self, service: str, launch: int, before_bytes: int, memory: Memory) -> Looked:
        """Returns whether a service's starts find less and less memory."""
        return self._memory.look_at_start(service, launch, before_bytes, memory.total_bytes)

    def look_at_holding(self, service: str, held_bytes: int | None, planned_bytes: int) -> Looked:
        """Returns whether a service holds clearly more than its plan counted."""
        return {("memory-beyond-plan", service): judge_holding(held_bytes, planned_bytes)}

    def look_at_answers(self, substituted: float) -> Looked:
        """Returns whether an answer came from another model than was asked for, which must never be."""
        said = f"{substituted:.0f} answers; the daemon's log names them" if substituted > 0 else None
        return {("substituted-answers", ""): said}

    def forget(self, service: str) -> None:
        """Drops what concerns a service that is not there any more; what was learnt of it is kept."""
        self._kept |= self._learnt_of(service)
        for checks in (self._engines, self._requests, self._canaries, self._contents, self._doubted_s):
            checks.pop(service, None)

    def _learnt_of(self, service: str) -> Kept:
        engine, requests = self._engines.get(service), self._requests.get(service)
        canaries = self._canaries.get(service)
        kept: dict[str, Sequence[Sequence[float]]] = {}
        if engine is not None:
            kept[_name(service, engine.method)] = engine.drafts.keep()
        if requests is not None:
            kept[_name(service, STREAMS)] = requests.keep()
        if canaries is not None:
            kept[_name(service, CANARIES)] = canaries.keep()
        return kept

    def lasted_s(self) -> dict[tuple[str, str], float]:
        """Returns for how long what is said has been so at least, where it took time to tell."""
        return {key: seconds for check in self._engines.values() for key, seconds in check.lasted_s().items()}

    def services(self) -> set[str]:
        """Returns the services of which something is remembered."""
        return self._engines.keys() | self._requests.keys() | self._canaries.keys()

    def keep(self) -> Kept:
        """Returns what was learnt, to be kept for a next daemon."""
        for service in self.services():
            self._kept |= self._learnt_of(service)
        return dict(self._kept)


def _name(service: str, method: str) -> str:
    return f"{service} {method}"
