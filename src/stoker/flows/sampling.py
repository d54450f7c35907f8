"""Turns what the exporter saw into samples, and into points of the history: one look serves `/metrics` and watching."""

from __future__ import annotations

from collections import deque

from stoker.flows.exporting import FRESH_S, Exporter
from stoker.records import WITHOUT_ENGINE, Memory
from stoker.records.watching import WatchPoint
from stoker.supervise.hands import Tools
from stoker.supervise.service import ServiceOwner
from stoker.watch.engine import EngineCheck
from stoker.watch.engine_page import NO_NAMES
from stoker.watch.families.engines import EngineSeen
from stoker.watch.page_check import TOO_LARGE, UNREACHABLE
from stoker.watch.reading import Asked, Buckets, high_quantile, make_sample
from stoker.watch.requests import Timed
from stoker.watch.samples import EngineSample, MachineSample

SILENT_S = 60.0  # only then an engine is asked for all that it counts: that is a hundred kilobytes to read
LOST = frozenset({UNREACHABLE, TOO_LARGE, NO_NAMES})
STALL_LOOKS = 20
INTER_TOKEN = "stoker_engine_inter_token_seconds"  # noqa: S105 - a metric's name


class Sampler:
    """Makes the samples of one look; remembers five minutes of each engine's histogram."""

    def __init__(self, exporter: Exporter, tools: Tools) -> None:
        self._exporter = exporter
        self._tools = tools
        self._buckets: dict[str, deque[Buckets]] = {}

    async def look(self) -> None:
        """Has everything looked at."""
        await self._exporter.look()

    def machine(self, at_s: float) -> MachineSample:
        """Returns what the last look saw of the machine."""
        seen = self._exporter.machine
        disks = tuple((disk.holds, disk.free_bytes, disk.total_bytes) for disk in seen.disks)
        return MachineSample(at_s, seen.memory, seen.gpus, disks)

    async def engine(self, owner: ServiceOwner, at_s: float) -> EngineSample | None:
        """Returns what the last look saw of a service's engine; None where it did not look at it."""
        name = owner.plan.service
        seen = next((one for one in self._exporter.engines if one.service == name), None)
        if seen is None:
            return None
        values = {} if seen.page is None else seen.page.values
        requests = self._tools.in_flight(name)
        work: object = tuple(values.values())
        if requests and self.silent_s(name) > SILENT_S and owner.endpoint is not None:
            work = hash(await self._tools.read_counters(owner.endpoint))
        asked = Asked(at_s, owner.service.launch, requests, work)
        lost, odd = (", ".join(sorted(said)) for said in (seen.problems & LOST, seen.problems - LOST))
        return make_sample(values, self._stall_s(seen), asked, lost, odd)

    def only_content(self, service: str, looked_s: float) -> str | None:
        """Returns the only content that a service was asked for since a look began, which may tell of a second before."""
        return self._exporter.only_content(service, looked_s - FRESH_S)

    def silent_s(self, service: str) -> float:
        """Returns for how long a service has had requests and said nothing to any of them."""
        return next((one.silent_s for one in self._exporter.services() if one.service == service), 0.0)

    def _stall_s(self, seen: EngineSeen) -> float | None:
        found = None if seen.page is None else seen.page.histograms.get(INTER_TOKEN)
        if found is None:
            self._buckets.pop(seen.service, None)
            return None
        known = self._buckets.setdefault(seen.service, deque(maxlen=STALL_LOOKS))
        before = known[0] if known else ()
        known.append(found.buckets)
        return high_quantile(before, found.buckets)


def engine_point(
    check: EngineCheck, sample: EngineSample, seconds: float, counted: tuple[int, int], timed: Timed | None = None
) -> WatchPoint:
    """Returns a look at a service as a point of its history; `counted` are requests that ended, and failed."""
    grew = check.growth
    return WatchPoint(
        seconds=seconds, running_most=sample.running, waiting_most=sample.waiting, requests=counted[0], failed=counted[1],
        generated_tokens=grew.generated if grew else None, prompt_tokens=grew.prompted if grew else None,
        draft_tokens=grew.drafted if grew else None, accepted_tokens=grew.accepted if grew else None,
        verify_steps=grew.steps if grew else None, **({} if timed is None else timed._asdict()),
    )  # fmt: skip


def machine_point(sample: MachineSample, seconds: float) -> WatchPoint:
    """Returns a look at the machine as a point of its history; of several GPUs the worst."""
    memory: Memory | None = sample.memory
    power_w = [gpu.power_w for gpu in sample.gpus if gpu.power_w is not None]
    heat_c = [gpu.temperature_c for gpu in sample.gpus if gpu.temperature_c is not None]
    clocks = [gpu.busy_clock_mhz for gpu in sample.gpus if gpu.busy_clock_mhz is not None]
    return WatchPoint(
        seconds=seconds, available_least_bytes=memory.available_bytes if memory else None,
        stalled_most_pct=memory.full_stall_pct if memory else None, power_most_w=max(power_w, default=None),
        temperature_most_c=max(heat_c, default=None), clock_least_mhz=min(clocks, default=None),
    )  # fmt: skip


def has_engine(owner: ServiceOwner) -> bool:
    """Tells whether a launch of it holds memory now."""
    return owner.service.state not in WITHOUT_ENGINE
