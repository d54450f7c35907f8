"""Tries one way to draft: starts the service that way, measures it under watch, and keeps what was measured."""

from __future__ import annotations

import time
from collections.abc import Sequence

from stoker import __version__
from stoker.bench.cell import Settings
from stoker.bench.turns import GREEDY, SILENCE_S
from stoker.box import LocalBox, clock_s
from stoker.config import Config, Paths
from stoker.engines import find
from stoker.errors import Refused, StokerError
from stoker.facts.machine.memory import read_memory
from stoker.flows.bench import TOOL, Live, Wanted, bench
from stoker.flows.bench_keeping import start_keeping
from stoker.flows.bench_targets import choose_service
from stoker.flows.client import Daemon
from stoker.flows.planning import make_plan
from stoker.flows.tunable import Tunable
from stoker.flows.tune_asking import NEAR_FLOOR, Asking, Interrupted, Talk, TuningStopped
from stoker.flows.tune_beside import Beside
from stoker.flows.up import follow
from stoker.records import BenchCell, BenchRun, CellResult, Seen, ServiceView, Sighting, State, Way, say_bytes, say_s
from stoker.store.bench import read_bench_lines, read_bench_run
from stoker.store.verifications import read_verifications
from stoker.tune.choosing import needs_more
from stoker.tune.families import OFF
from stoker.tune.ratios import compare
from stoker.tune.reading import read_cell

KEPT_FOR_S = 24 * 3600.0  # what was measured before may have been another machine: hotter, or busy
LOOKED_THROUGH = 100
LEAST_RUNS = 4  # fewer pairs of repeats tell nothing of chance


class MemoryNear(TuningStopped):
    """The memory is nearly gone."""


class Trier:
    """Tries ways; `starts` counts those of an engine, and `took_s` how long each way took."""

    def __init__(self, paths: Paths, config: Config, daemon: Daemon, tunable: Tunable, asking: Asking, talk: Talk) -> None:
        self._paths, self._daemon, self._tunable, self._asking, self._talk = paths, daemon, tunable, asking, talk
        self._near_bytes = int(NEAR_FLOOR * config.limits.memory_floor_bytes)
        self._service = tunable.wish.name
        self._beside = Beside(daemon, config, tunable, asking) if asking.beside else None
        self._bases: dict[Way, Sighting] = {}
        self._best: Sighting | None = None
        self.starts = 0
        self.took_s: list[float] = []

    def find_kept(self, way: Way) -> Sighting | None:
        """Returns what was measured of a way today, by the same plan and the same question."""
        if self._asking.fresh or self._beside is not None:
            return None
        plan_id = make_plan(self._tunable.wish_for(way)).plan_id
        for run in self._kept_runs():
            if run.subject.plan_id == plan_id and (found := self._read(run, way, is_kept=True)) is not None:
                self._note(found)
                return found
        return None

    def _note(self, found: Sighting | None) -> None:
        """Keeps what others are compared with: off, what the service has, and the fastest way so far."""
        if found is None:
            return
        if self._is_base(found.way):
            self._bases[found.way] = found
        if self._best is None or compare(found, self._best).ratio > 1:
            self._best = found

    def _is_base(self, way: Way) -> bool:
        """Tells whether all others are compared with a way: with off, and with what the service has."""
        return way in (OFF, self._tunable.present)

    def _kept_runs(self) -> Sequence[BenchRun]:
        since = clock_s() - KEPT_FOR_S
        file, found = self._paths.bench_database, []
        for line in read_bench_lines(file, LOOKED_THROUGH):
            if line.service == self._service and line.is_whole and (line.began_at or 0.0) > since and line.id is not None:
                run = read_bench_run(file, line.id).run
                same = (run.tool, run.tool_version, run.words) == (TOOL, __version__, self._asking.words())
                found += [run] if same and {one.cell for one in run.cells} == set(self._asking.cells()) else []
        return found

    def _read(self, run: BenchRun, way: Way, *, is_kept: bool = False) -> Sighting | None:
        by_cell = {one.cell: one for one in run.cells}
        seen = [self._read_cell(by_cell[cell], way, run.id) for cell in self._asking.cells()]
        found = tuple(one for one in seen if one is not None)
        return Sighting(way, found, is_kept, is_level=self._beside is not None) if len(found) == len(seen) else None

    def _read_cell(self, result: CellResult, way: Way, run_id: int | None = None) -> Seen | None:
        """Returns what a cell tells of a way; of one that was tried beside what runs, by what that gave meanwhile."""
        seen = read_cell(result, way, self._asking.objective, run_id, find(self._tunable.plan.engine).lookup_s)
        if seen is None or self._beside is None or way == self._tunable.present:
            return seen
        return self._beside.level(seen, result.cell, self._bases[self._tunable.present])

    def try_way(self, way: Way) -> Sighting | str:
        """Returns what a way gave, or why it gave nothing; raises TuningStopped or Interrupted."""
        try:
            return self._try(way)
        finally:
            if self._beside is not None:
                self._beside.end()

    def close(self) -> None:
        """Leaves nothing beside the service."""
        if self._beside is not None:
            self._beside.end()

    def _try(self, way: Way) -> Sighting | str:
        began_s = time.monotonic()
        try:
            view = self._begin(way)
            if view.state is not State.READY:
                return self._why_not_ready(view)
            ready_s = time.monotonic()
            run = self._measure(way, view.name)
            self._check_memory([one.machine.available_low_bytes for one in run.cells if one.machine])
        except MemoryNear as problem:
            if way.kind is not None:
                raise
            return f"{problem.what} ({problem.why})"  # a size that takes too much is a result, and smaller ones go on
        except TuningStopped:
            raise
        except StokerError as problem:  # the plan refuses it, or it died before it was asked
            return f"{problem.what}{f' ({problem.why})' if problem.why else ''}"
        if not run.is_whole:
            raise Interrupted
        asked_s = self._asking.measure_s * len(self._asking.cells())
        self.took_s.append(ready_s - began_s + min(time.monotonic() - ready_s, asked_s))  # few are measured on
        found = self._read(run, way)
        self._note(found)
        return found if found is not None else _say_errors(run)

    def start(self, way: Way, *, is_trial: bool = True) -> ServiceView:
        """Returns the service once it is READY that way, or rests; where it runs that way already, nothing is started."""
        before = next((one for one in self._daemon.status().services if one.name == self._service), None)
        view = self._daemon.up(self._tunable.wish_for(way), is_trial=is_trial and way != self._tunable.present)
        if view.state is not State.READY or before is None or before.plan_id != view.plan_id:
            self.starts += 1
        return self._follow(way, view)

    def _begin(self, way: Way) -> ServiceView:
        """Returns the service that runs a way, or rests: the one itself, or a second one beside it."""
        present = self._tunable.present
        if self._beside is None:
            return self.start(way)
        if way == present:
            view = self.start(way)
            try:
                self._beside.check_room(way)
            except Refused as problem:
                raise TuningStopped(problem.what, why=problem.why) from problem
            return view
        if present not in self._bases:
            raise TuningStopped(
                f"{self._service} gave nothing as it is ({present.name})", why="it is what every way is compared with"
            )
        self.starts += 1
        return self._follow(way, self._beside.begin(way))

    def _follow(self, way: Way, view: ServiceView) -> ServiceView:
        for now in follow(self._daemon, view):
            if now.state is not view.state:
                self._talk.tell(f"{way.name}: {now.state}")
            view = now
        return view

    def _why_not_ready(self, view: ServiceView) -> str:
        """Returns why it is not READY; raises TuningStopped where that is a reason to try nothing else."""
        kept = read_verifications(self._paths.database, view.name, 1)
        if kept and kept[0].plan_id == view.plan_id and kept[0].occasion == "gate" and not kept[0].passed:
            raise TuningStopped(
                f"{view.name} did not pass its gate that way", why=view.why,
            )  # fmt: skip
        self._check_memory(())
        return view.why

    def _measure(self, way: Way, service: str) -> BenchRun:
        asking, beside = self._asking, self._beside
        target, subject = choose_service(service, direct=True)
        settings = Settings(
            seed=asking.seed, runs=None, precision=asking.precision, budget_s=asking.measure_s, silence_s=SILENCE_S,
            slo=asking.slo, more=GREEDY, least_runs=LEAST_RUNS,
            goes_on=lambda result: self._goes_on(way, result),
            between=None if beside is None or way == self._tunable.present else beside.ask,
        )  # fmt: skip
        wanted = Wanted(target, subject, asking.cells(), settings, asking.words())
        keeper = start_keeping(self._paths, wanted, None)
        return keeper.close(bench(wanted, Live(keeper.keep, self._watch))).run

    def _goes_on(self, way: Way, result: CellResult) -> bool:
        """Tells whether a way is measured on: one with which all are compared, or one that may be the fastest."""
        if self._is_base(way):
            return True
        seen = self._read_cell(result, way)
        if seen is None:
            return False
        place, found = self._asking.cells().index(result.cell), Sighting(way, (seen,))
        others = [*self._bases.values(), *([] if self._best is None else [self._best])]
        return needs_more(found, [Sighting(one.way, (one.seen[place],)) for one in others if one.way != way])

    def _watch(self, cell: BenchCell, text: str) -> None:
        self._check_memory(())
        self._talk.tell(f"{cell.content}: {text}")

    def _check_memory(self, seen: Sequence[int | None]) -> None:
        available_bytes = min([read_memory(LocalBox()).available_bytes, *(one for one in seen if one is not None)])
        if available_bytes < self._near_bytes:
            raise MemoryNear(
                f"only {say_bytes(available_bytes)} of memory are available",
                why=f"nothing is tried below {say_bytes(self._near_bytes)}, {NEAR_FLOOR:g} times what the system keeps",
                next_step="end other programs, or plan for less: a smaller context or fewer requests at once",
            )


def _say_errors(run: BenchRun) -> str:
    errors = [f"{error} ({count} times)" for cell in run.cells for error, count in cell.errors]
    return f"requests failed: {'; '.join(errors[:2])}" if errors else "nothing was measured: too few tokens came"


def say_time(seconds: float | None) -> str:
    """Returns about how long, where that is known."""
    return "" if seconds is None else f", about {say_s(seconds)}"
