"""Watches: holds what each look saw against what is usual, and tells, keeps and acts.

A fault in here must end neither the daemon nor a service.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator

from prometheus_client import Metric
from prometheus_client.registry import Collector

from stoker.config import Paths
from stoker.errors import StokerError
from stoker.flows.acting import Acts
from stoker.flows.canaries import Canaries
from stoker.flows.notices import Notices
from stoker.flows.sampling import Sampler, engine_point, has_engine, machine_point
from stoker.flows.watch_log import WatchLog
from stoker.gateway.metrics import GatewayMetrics
from stoker.records import State, UsageRecord
from stoker.records.boxes import BoxAlert, BoxHealth, BoxView
from stoker.records.watching import Alert, Silence, WatchedService, WatchSettings, WatchView
from stoker.store.watch import MACHINE, read_acts_since, read_alerts_since, read_learnt, read_silences
from stoker.supervise.service import ServiceOwner
from stoker.supervise.supervisor import Supervisor
from stoker.watch.book import AlertBook, Clock
from stoker.watch.boxes import BoxesCheck
from stoker.watch.engine import ACCEPT_SLOTS
from stoker.watch.families.judged import judged_families
from stoker.watch.reading import method_of
from stoker.watch.samples import EngineSample, MachineSample
from stoker.watch.table import Looked, alerts_by_id
from stoker.watch.watcher import Watcher

DOWN = frozenset({State.FAILED, State.WEDGED})
DAY_S = 86400.0
JUMP_S = 60.0
LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "critical": logging.ERROR}
logger = logging.getLogger("stoker.watch")


class Watching(Collector):
    """The daemon's watch over everything; `run` lives as long as the daemon."""

    def __init__(
        self, paths: Paths, settings: WatchSettings, floor_bytes: int, supervisor: Supervisor, sampler: Sampler,
        metrics: GatewayMetrics, acts: Acts, notices: Notices, canaries: Callable[[Callable[[], Watcher]], Canaries],
        boxes: Callable[[], tuple[BoxView, ...]],
    ) -> None:  # fmt: skip
        self._paths, self._settings = paths, settings
        self._supervisor, self._sampler, self._metrics = supervisor, sampler, metrics
        self._acts, self._notices = acts, notices
        self._boxes, self._boxes_check = boxes, BoxesCheck()
        self._canaries = canaries(lambda: self._watcher)
        self._book = AlertBook(alerts_by_id())
        self._watcher = Watcher(floor_bytes, {})
        self._log = WatchLog(paths.watch_database, lambda: self._watcher.keep())
        self._samples: dict[str, EngineSample] = {}
        self._counted_s: dict[str, float] = {}  # when the look began that last saw a service's counters
        self._machine = MachineSample(0.0, None)
        self._looked_at: Clock | None = None
        self._fault = ""
        self._resume(floor_bytes)

    def _resume(self, floor_bytes: int) -> None:
        """Takes up what a former daemon learnt, told and did; without it watching begins anew."""
        now, file = time.time(), self._paths.watch_database
        try:
            self._watcher = Watcher(floor_bytes, read_learnt(file))
            firing = [one for one in read_alerts_since(file, now) if one.state == "firing"]
            self._book.resume(firing, Clock(time.monotonic(), now))
            self._boxes_check.remember(firing)
            for silence in read_silences(file):
                self._book.silence(silence)
            self._acts.resume(read_acts_since(file, now - DAY_S))
        except StokerError as problem:
            logger.warning("what was watched before cannot be read: %s", problem.why)

    def note(self, record: UsageRecord, left: bool) -> None:
        """Takes a request that ended, and whether its client left before; never waits."""
        self._watcher.note(time.monotonic(), record, left)

    async def run(self) -> None:
        """Looks again and again until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._notices.run())
            tasks.create_task(self._canaries.run())
            try:
                while True:
                    await asyncio.sleep(self._settings.every_s)
                    await self._look_or_say()
            finally:
                await self._log.write(time.monotonic(), is_last=True)
                await self._notices.close()

    async def _look_or_say(self) -> None:
        try:
            await self.look()
            self._fault = ""
        except Exception as problem:  # a fault here must not end the daemon, and with it all services
            if not self._fault:
                logger.exception("a look failed")
            self._fault = f"the last look failed ({type(problem).__name__}: {problem})"

    async def look(self) -> None:
        """Looks once."""
        begun_s = time.monotonic()
        await self._sampler.look()
        await self._supervisor.look_at_memory()
        clock, before = Clock(time.monotonic(), time.time()), self._looked_at
        self._looked_at = clock
        took_s = self._settings.every_s if before is None else clock.at_s - before.at_s
        _say_jump(before, clock)
        looked = self._look_at_machine(clock, took_s) | self._boxes_check.look(self._boxes())
        for owner in list(self._supervisor.owners.values()):
            looked |= await self._look_at_service(owner, clock, took_s)
            self._note_content(owner, begun_s)
        changed = self._forget_gone(clock) + self._book.take(looked, clock, self._watcher.lasted_s())
        for alert in changed:
            await self._tell(alert, clock)
        await self._log.write(clock.at_s)

    def _look_at_machine(self, clock: Clock, took_s: float) -> Looked:
        self._machine = self._sampler.machine(clock.at_s)
        waits = any(one.service.state is State.WAITING_FOR_MEMORY for one in self._supervisor.owners.values())
        self._log.note_point(MACHINE, clock.epoch, machine_point(self._machine, took_s))
        answers = self._watcher.look_at_answers(self._metrics.substituted_answers)
        return self._watcher.look_at_machine(self._machine, waits) | answers

    async def _look_at_service(self, owner: ServiceOwner, clock: Clock, took_s: float) -> Looked:
        name, service = owner.plan.service, owner.service
        is_down = service.why if service.state in DOWN else ""
        looked = self._watcher.look_at_life(name, owner.recent_restarts(clock.epoch), is_down)
        if owner.memory_before_bytes is not None and has_engine(owner) and self._machine.memory is not None:
            looked |= self._watcher.look_at_start(name, service.launch, owner.memory_before_bytes, self._machine.memory)
        looked |= self._watcher.look_at_holding(name, owner.seen_bytes, owner.plan.memory_need_bytes)
        sample = await self._sampler.engine(owner, clock.at_s)
        if sample is None:
            self._samples.pop(name, None)
            return looked | self._watcher.look_away(name)
        self._samples[name] = sample
        method = method_of(owner.plan)
        if self._canaries.took_part(name):
            self._watcher.engine(name, method).begin_anew()
        looked |= self._watcher.look_at_engine(name, method, sample, self._sampler.silent_s(name))
        requests = self._watcher.requests(name)
        counted, timed = requests.counted(clock.at_s, took_s), requests.timed(clock.at_s, took_s)
        point = engine_point(self._watcher.engine(name, method), sample, took_s, counted, timed)
        self._log.note_point(name, clock.epoch, point)
        return looked

    def _note_content(self, owner: ServiceOwner, begun_s: float) -> None:
        """Counts what grew for the content of which all requests were since the last look that saw the engine's counters."""
        name = owner.plan.service
        sample, since_s = self._samples.get(name), self._counted_s.get(name)
        if sample is None or sample.lost:
            return
        self._counted_s[name] = begun_s
        growth = self._watcher.engine(name, method_of(owner.plan)).growth
        content = None if growth is None or since_s is None else self._sampler.only_content(name, since_s)
        if growth is not None and content is not None:
            self._watcher.contents(name).take(content, growth)

    def _forget_gone(self, clock: Clock) -> list[Alert]:
        """Drops what concerns services that were forgotten."""
        gone = self._watcher.services() - self._supervisor.owners.keys()
        for name in gone:
            self._watcher.forget(name)
            self._counted_s.pop(name, None)
        return [alert for name in gone for alert in self._book.drop(name, clock)]

    async def _tell(self, alert: Alert, clock: Clock) -> None:
        level = LEVELS[alert.severity] if alert.state == "firing" else logging.INFO
        logger.log(level, "alert=%s about=%s state=%s %s: %s", alert.id, alert.about, alert.state, alert.title, alert.why)
        self._log.note_alert(alert)
        self._notices.tell(alert)
        if alert.state == "firing" and (acted := await self._acts.act(alert, clock.epoch)):
            self._log.note_act(acted)

    async def silence(self, silence: Silence) -> tuple[Silence, ...]:
        """Keeps quiet about some alerts from now on; returns all silences that last."""
        self._book.silence(silence)
        self._log.note_silence(silence)
        await self._log.write(time.monotonic())
        return self._book.silences(time.time())

    def health(self) -> BoxHealth:
        """Returns what linked boxes are told of this one's machine."""
        memory = self._machine.memory
        firing = (one for one in self._book.alerts(time.time()) if one.state == "firing")
        return BoxHealth(
            memory.total_bytes if memory else None, memory.available_bytes if memory else None,
            tuple(BoxAlert(one.id, one.about, one.severity, one.title) for one in firing),
        )  # fmt: skip

    def view(self) -> WatchView:
        """Returns what `stoker watch` shows."""
        memory, gpus, now = self._machine.memory, self._machine.gpus, time.time()
        lost = (self._fault, self._log.lost, *self._notices.lost())
        return WatchView(
            at=now if self._looked_at is None else self._looked_at.epoch, every_s=self._settings.every_s,
            services=tuple(self._view_service(one) for _, one in sorted(self._supervisor.owners.items())),
            available_bytes=memory.available_bytes if memory else None, total_bytes=memory.total_bytes if memory else None,
            power_w=max((one.power_w for one in gpus if one.power_w is not None), default=None),
            temperature_c=max((one.temperature_c for one in gpus if one.temperature_c is not None), default=None),
            alerts=self._book.alerts(now), silences=self._book.silences(now), lost=tuple(one for one in lost if one),
        )  # fmt: skip

    def _view_service(self, owner: ServiceOwner) -> WatchedService:
        name, state = owner.plan.service, owner.service.state.value
        sample = self._samples.get(name)
        if sample is None:
            return WatchedService(name, state, None, None, None, None, None, None)
        check = self._watcher.engine(name, method_of(owner.plan))
        seen, grew = check.drafts.seen(ACCEPT_SLOTS), check.growth
        canary = self._canaries.view(owner)
        rate = None if grew is None or grew.generated is None else grew.generated / grew.took_s
        return WatchedService(
            name, state, sample.running, sample.waiting, rate, seen.accepted / seen.drafted if seen.drafted else None,
            1 + seen.accepted / seen.steps if seen.steps else None, check.drafts.band, sample.lost, canary,
            self._watcher.contents(name).views(),
        )  # fmt: skip

    def collect(self) -> Iterator[Metric]:
        """Tells Prometheus what this daemon judges by itself."""
        views = ((name, self._canaries.view(owner)) for name, owner in self._supervisor.owners.items())
        canaries = {name: view for name, view in views if view is not None}
        contents = {name: self._watcher.contents(name).totals for name in self._supervisor.owners}
        yield from judged_families(self._book.alerts(time.time()), canaries, contents)


def _say_jump(before: Clock | None, now: Clock) -> None:
    """Says where the clock on the wall was set: the history has a hole or an overlap there, and nothing else has."""
    if before is not None and abs(jump_s := (now.epoch - before.epoch) - (now.at_s - before.at_s)) > JUMP_S:
        logger.warning("the clock was set by %+.0f s; the history shows it, what is judged does not", jump_s)
