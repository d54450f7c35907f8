"""What the dashboard shows of one service when that is opened: read beside the streams, imported when somebody asks."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable

from stoker.config import Paths
from stoker.flows.plans import shown
from stoker.records import BenchRunLine, Diagnosis, Machine, Plan, TimelineView
from stoker.records.diagnosis import LogSearch
from stoker.records.looking import ClientsView, RunsCompared, RunShown
from stoker.records.suggesting import SuggestionsView
from stoker.records.watching import HistoryView

SUGGESTED_S = 30.0  # how old suggestions may be: to make them, the headers of many models are read


class Looking:
    """Looks into what is kept; `plan_of` raises WrongUse for a service that does not exist."""

    def __init__(self, paths: Paths, plan_of: Callable[[str], Plan]) -> None:
        self._paths = paths
        self._plan_of = plan_of
        self._suggesting, self._searching = asyncio.Lock(), asyncio.Lock()
        self._suggested: tuple[float, SuggestionsView] | None = None
        self._comparing = asyncio.Semaphore(1)  # a process of its own, with as much memory as two runs have

    def plan(self, name: str) -> Plan:
        """Returns a service's plan without its secrets."""
        return shown(self._plan_of(name))

    async def timeline(self, name: str) -> TimelineView:
        """Returns its last start beside the one before."""
        from stoker.flows.timeline import view_service

        self._plan_of(name)
        return await asyncio.to_thread(view_service, self._paths, name)

    async def diagnosis(self, name: str) -> Diagnosis:
        """Returns what its log says of a failure."""
        from stoker.flows.failing import diagnose_beside

        self._plan_of(name)
        return await diagnose_beside(self._paths, name)

    async def search(self, name: str, text: str, most: int, folds: bool) -> LogSearch:
        """Returns where its whole log holds a text; one search after the other, whoever asks."""
        from stoker.flows.log_search import search_log
        from stoker.flows.logs import find_log

        self._plan_of(name)
        async with self._searching:
            return await asyncio.to_thread(search_log, find_log(self._paths, name), text, most, folds)

    async def history(self, service: str | None, span_s: float) -> HistoryView:
        """Returns its past, or the machine's; empty where nothing is kept."""
        from stoker.flows.alerts import look_back

        return await asyncio.to_thread(look_back, self._paths, service, span_s)

    async def machine(self) -> Machine:
        """Returns what is known of this machine."""
        from stoker.box import LocalBox
        from stoker.facts.machine.read import read_machine

        return await asyncio.to_thread(read_machine, LocalBox(), str(self._paths.state))

    async def suggestions(self) -> SuggestionsView:
        """Returns what would run well here; of those who ask at once one looks, and all are told."""
        from stoker.flows.suggesting import suggest

        async with self._suggesting:
            if self._suggested is None or time.monotonic() - self._suggested[0] > SUGGESTED_S:
                view = await asyncio.to_thread(suggest, os.environ)
                self._suggested = time.monotonic(), view
            return self._suggested[1]

    async def bench_runs(self) -> list[BenchRunLine]:
        """Returns the kept runs of benchmarks, the last first."""
        from stoker.flows.bench_runs import list_runs

        return await asyncio.to_thread(list_runs, self._paths)

    async def bench_run(self, name: str) -> RunShown:
        """Returns a run with its table and charts."""
        from stoker.flows.bench_looking import show_run

        return await asyncio.to_thread(show_run, self._paths, name)

    async def comparison(self, a: str, b: str) -> RunsCompared:
        """Returns how run b differs from run a."""
        from stoker.flows.bench_looking import compare_beside

        async with self._comparing:
            return await asyncio.to_thread(compare_beside, self._paths, a, b)

    async def clients(self, model: str | None) -> ClientsView:
        """Returns what makes each client ask for a model."""
        from stoker.flows.clients import make_all_configs

        return await asyncio.to_thread(make_all_configs, self._paths, model)
