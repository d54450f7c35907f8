"""Everything that is watched, in one place: samples in, what is wrong out. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stoker.records import Memory, UsageRecord
from stoker.watch.disks import DisksCheck
from stoker.watch.engine import EngineCheck
from stoker.watch.gpus import GpusCheck
from stoker.watch.memory import MemoryCheck
from stoker.watch.requests import RequestCheck, ended
from stoker.watch.samples import EngineSample, MachineSample
from stoker.watch.table import Looked, threshold

Kept = Mapping[str, Sequence[Sequence[float]]]


class Watcher:
    """The checks of all services and of the machine; `kept` is what was learnt before, by service and method."""

    def __init__(self, floor_bytes: int, kept: Kept) -> None:
        self._kept: dict[str, Sequence[Sequence[float]]] = dict(kept)
        self._memory, self._gpus, self._disks = MemoryCheck(floor_bytes), GpusCheck(), DisksCheck()
        self._engines: dict[str, EngineCheck] = {}
        self._requests: dict[str, RequestCheck] = {}

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
        return self._requests.setdefault(service, RequestCheck(service))

    def note(self, at_s: float, record: UsageRecord) -> None:
        """Takes a request that ended."""
        if record.service:
            self.requests(record.service).take(ended(at_s, record))

    def look_at_engine(self, service: str, method: str, sample: EngineSample, silent_s: float) -> Looked:
        """Returns what is wrong with a service that is READY, and with its requests."""
        check = self.engine(service, method)
        check.forget_gap(sample.at_s)
        return check.look(sample, silent_s) | self.requests(service).look(sample.at_s)

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

    def look_at_answers(self, substituted: float) -> Looked:
        """Returns whether an answer came from another model than was asked for, which must never be."""
        said = f"{substituted:.0f} answers; the daemon's log names them" if substituted > 0 else None
        return {("substituted-answers", ""): said}

    def forget(self, service: str) -> None:
        """Drops what concerns a service that is not there any more; what was learnt of it is kept."""
        check = self._engines.pop(service, None)
        self._requests.pop(service, None)
        if check is not None:
            self._kept[_name(service, check.method)] = check.drafts.keep()

    def lasted_s(self) -> dict[tuple[str, str], float]:
        """Returns for how long what is said has been so at least, where it took time to tell."""
        return {key: seconds for check in self._engines.values() for key, seconds in check.lasted_s().items()}

    def services(self) -> set[str]:
        """Returns the services of which something is remembered."""
        return self._engines.keys() | self._requests.keys()

    def keep(self) -> Kept:
        """Returns what was learnt, to be kept for a next daemon."""
        self._kept |= {_name(name, check.method): check.drafts.keep() for name, check in self._engines.items()}
        return dict(self._kept)


def _name(service: str, method: str) -> str:
    return f"{service} {method}"
