"""What the dashboard shows of one service when that is opened: read beside the streams, imported when somebody asks."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable

import msgspec

from stoker.config import Paths
from stoker.plan.secrets import hide_words, without_secrets
from stoker.records import Diagnosis, Machine, Plan, TimelineView
from stoker.records.diagnosis import LogSearch
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

    def plan(self, name: str) -> Plan:
        """Returns a service's plan without its secrets."""
        plan = self._plan_of(name)
        return msgspec.structs.replace(
            plan, settings=without_secrets(plan.settings), program=tuple(hide_words(plan.program))
        )

    async def timeline(self, name: str) -> TimelineView:
        """Returns its last start beside the one before."""
        from stoker.flows.timeline import view_service

        self._plan_of(name)
        return await asyncio.to_thread(view_service, self._paths, name)

    async def diagnosis(self, name: str) -> Diagnosis:
        """Returns what its log says of a failure."""
        from stoker.flows.diagnose import diagnose_service

        self._plan_of(name)
        return await asyncio.to_thread(diagnose_service, self._paths, name, None)

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
