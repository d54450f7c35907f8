"""Brings up to date what `/metrics` tells of engines, machine and services, beside the streams and not in their way."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from prometheus_client import Metric
from prometheus_client.registry import Collector

from stoker.box import Box, LocalBox, clock_s
from stoker.config import Paths
from stoker.errors import StokerError
from stoker.facts.machine.memory import read_memory
from stoker.gateway.serving import Serving
from stoker.probes.kit.prover import Prober, TooLarge
from stoker.records import Gpu
from stoker.supervise.service import ServiceOwner
from stoker.supervise.supervisor import Supervisor
from stoker.watch.engine_page import read_page
from stoker.watch.families.engines import EngineSeen, engine_families
from stoker.watch.families.machine import DiskSeen, MachineSeen, machine_families
from stoker.watch.families.services import ServiceSeen, service_families
from stoker.watch.page_check import TOO_LARGE, UNREACHABLE, Known, find_problems, learn

FRESH_S = 1.0
PAGE_LIMIT_S = 3.0  # a scrape has ten seconds; one engine that hangs must not cost the others their place in it
DRIVER = "/proc/driver/nvidia/version"
Launch = tuple[int, int]
logger = logging.getLogger("stoker.watch")


class Exporter(Collector):
    """Looks when it is asked to, at most once a second; what it saw is told until it looks again."""

    def __init__(
        self, paths: Paths, floor_bytes: int, supervisor: Supervisor, serving: Callable[[], Serving], prober: Prober
    ) -> None:
        self._paths = paths
        self._floor_bytes = floor_bytes
        self._supervisor = supervisor
        self._serving = serving
        self._prober = prober
        self._box: Box = LocalBox()
        self.machine = MachineSeen()
        self.engines: tuple[EngineSeen, ...] = ()
        self._told: list[Metric] = []
        self._known: dict[str, tuple[Launch, Known]] = {}
        self._looked_at = float("-inf")
        self._looks = asyncio.Lock()
        self._open = contextlib.ExitStack()
        self._read_gpus: Callable[[], tuple[Gpu, ...]] | None = None

    def close(self) -> None:
        """Lets go of the GPU's driver."""
        self._open.close()

    async def look(self) -> None:
        """Reads engines, memory, GPUs and disks, unless that was done a moment ago."""
        async with self._looks:
            now = asyncio.get_running_loop().time()
            if now - self._looked_at < FRESH_S:
                return
            owners = [one for one in self._supervisor.owners.values() if one.endpoint and one.plan.is_engine]
            models = tuple({one.plan.model_path for one in self._supervisor.owners.values() if one.plan.model_path})
            _, machine, engines = await asyncio.gather(
                self._supervisor.look_at_memory(),
                asyncio.to_thread(self._read_machine, models),
                asyncio.gather(*map(self._look_at_engine, owners)),
            )
            _say_changes(self.engines, engines)
            self.machine, self.engines = machine, tuple(engines)
            self._looked_at = now

    async def prepare(self) -> None:
        """Looks, and makes what is told of engines and machine: in a thread, since streams wait for what is done here."""
        await self.look()
        self._told = await asyncio.to_thread(lambda: [*engine_families(self.engines), *machine_families(self.machine)])

    async def pass_on(self, service: str) -> bytes:
        """Returns what a service's engine tells of itself; raises StokerError where it tells nothing."""
        owner = self._supervisor.find(service)
        if owner.endpoint is None:
            raise StokerError(f"{service} gives no metrics", why=f"it is {owner.service.state}")
        return await self._prober.read_page(owner.endpoint, PAGE_LIMIT_S)

    def collect(self) -> Iterator[Metric]:
        """Tells what was prepared, and of services what is so now."""
        yield from self._told
        yield from service_families(self.services())

    def only_content(self, service: str, since_s: float) -> str | None:
        """Returns the content of all that the gateway has sent to a service since then; None where that is not one."""
        return self._serving().contents.only(service, since_s)

    async def _look_at_engine(self, owner: ServiceOwner) -> EngineSeen:
        service, engine, endpoint = owner.plan.service, owner.plan.engine, owner.endpoint
        if endpoint is None:
            return EngineSeen(service, engine, None, frozenset())
        try:
            text = await self._prober.read_page(endpoint, PAGE_LIMIT_S)
        except StokerError as problem:
            return EngineSeen(
                service, engine, None, frozenset({TOO_LARGE if isinstance(problem, TooLarge) else UNREACHABLE})
            )
        page = await asyncio.to_thread(read_page, engine, text)
        launch = (owner.service.launch, endpoint.port)
        before = self._known.get(service)
        known = before[1] if before and before[0] == launch else None
        problems = find_problems(known, page)
        self._known[service] = (launch, learn(known, page, problems))
        return EngineSeen(service, engine, page, problems)

    def services(self) -> Iterator[ServiceSeen]:
        serving = self._serving()
        for name, owner in sorted(self._supervisor.owners.items()):
            yield ServiceSeen(
                name, serving.in_flight(name), serving.waiting(name), serving.silent_s(name),
                owner.recent_restarts(clock_s()), owner.service.launch,
            )  # fmt: skip

    # In a thread: a file system may be slow, and a driver is asked.

    def _read_machine(self, models: Iterable[str]) -> MachineSeen:
        try:
            memory = read_memory(self._box)
        except StokerError:
            memory = None
        return MachineSeen(memory, self._floor_bytes, self._gpus(), tuple(self._disks(models)))

    def _gpus(self) -> tuple[Gpu, ...]:
        if self._box.read(DRIVER) is None:  # importing its library costs memory that an idle daemon has not to give
            return ()
        if self._read_gpus is None:
            from stoker.facts.machine.nvidia import watching_gpus

            self._read_gpus = self._open.enter_context(watching_gpus())
        return self._read_gpus()

    def _disks(self, models: Iterable[str]) -> Iterator[DiskSeen]:
        if found := self._box.disk_bytes(str(self._paths.state)):
            yield DiskSeen("state", *found)
        folders = {str(Path(one).parent) for one in models if one.startswith("/")}
        disks = [found for folder in folders if (found := self._box.disk_bytes(folder))]
        if disks:  # the fullest one
            yield DiskSeen("models", *min(disks, key=lambda disk: disk[1]))


def _say_changes(before: Iterable[EngineSeen], now: Iterable[EngineSeen]) -> None:
    """Says once what is wrong with an engine's metrics, and once that it is over."""
    problems = {one.service: one.problems for one in before}
    for one in now:
        known = problems.get(one.service, frozenset())
        if one.problems - known:
            logger.warning(
                "service=%s its engine's metrics cannot be relied on: %s", one.service, ", ".join(sorted(one.problems))
            )
        elif known and not one.problems:
            logger.info("service=%s its engine's metrics are as they should be again", one.service)
