"""A fix in two steps, for pages and agents: what would change is told with a digest; who names that has it tried.

The daemon follows what it began, so that nobody has to wait for it: once the service is READY by its gate, the change is
written into stoker.toml; else what ran before runs again, and the file stays as it is.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from stoker.config import Paths, read_config
from stoker.errors import Refused, StokerError
from stoker.flows.failing import diagnose_beside
from stoker.records import Plan, SwitchView, Wish
from stoker.records.fixing import FixOutcome, FixTried, FixView

if TYPE_CHECKING:
    from stoker.flows.fixing import Fix

LOOK_S = 30.0
logger = logging.getLogger("stoker.daemon")


class FixTrials:
    """Proposes fixes, and tries those that are agreed to; `last` is what was tried last, under way or over.

    `who_goes` raises StokerError where there can be no room; `switch` begins one, `await_switch` waits for its next step.
    """

    def __init__(
        self, paths: Paths, who_goes: Callable[[Plan], tuple[str, ...]], switch: Callable[[Wish], Awaitable[SwitchView]],
        await_switch: Callable[[int, float, float], Awaitable[SwitchView]],
    ) -> None:  # fmt: skip
        self.last: FixTried | None = None
        self._paths, self._who_goes, self._switch, self._await_switch = paths, who_goes, switch, await_switch
        self._begun: asyncio.Queue[tuple[Fix, SwitchView]] = asyncio.Queue()

    async def propose(self, service: str) -> FixView:
        """Returns what would mend a service's last failure; raises Refused where no change of its table does."""
        return self._view(await self._read(service))

    async def begin(self, service: str, digest: str) -> SwitchView:
        """Begins to try what the digest stands for; raises Refused where it would be something else by now."""
        fix = await self._read(service)
        if _digest(fix) != digest:
            raise Refused(
                f"what would mend {service} is not what was shown", why="its log, its plan or stoker.toml changed meanwhile",
                next_step="look again, and decide anew",
            )  # fmt: skip
        view = await self._switch(fix.wish)
        self.last = FixTried(service, fix.cause.rule, view.since)
        self._begun.put_nowait((fix, view))
        return view

    async def run(self) -> None:
        """Follows what was begun until cancelled; a fix whose switch a next daemon ends is written by nobody."""
        while True:
            fix, view = await self._begun.get()
            tried = FixTried(fix.service, fix.cause.rule, view.since)
            outcome, why = await self._finish(fix, view)
            logger.info("service=%s fix=%s outcome=%s why=%s", tried.service, tried.rule, outcome, why)
            self.last = msgspec.structs.replace(tried, outcome=outcome, why=why)

    async def _finish(self, fix: Fix, view: SwitchView) -> tuple[FixOutcome, str]:
        while view.outcome is None:
            view = await self._await_switch(len(view.steps), view.since, LOOK_S)
        if view.outcome != "ready":
            return "not applied", view.why
        from stoker.flows.fixing import write_fix

        try:
            backup = await asyncio.to_thread(write_fix, fix)
        except StokerError as problem:
            return "not written", f"{problem.what}; {problem.next_step or problem.why}"
        return "written", f"it is READY so, and {fix.file} says it; as it was before: {backup}"

    async def _read(self, service: str) -> Fix:
        from stoker.flows.fixing import find_fix

        told = await diagnose_beside(self._paths, service)
        return await asyncio.to_thread(lambda: find_fix(self._paths, read_config(self._paths.config), service, told))

    def _view(self, fix: Fix) -> FixView:
        cause = fix.cause
        return FixView(
            service=fix.service, rule=cause.rule, title=cause.title, confidence=cause.confidence, because=cause.cause,
            settings=fix.settings, lines=fix.lines, file=str(fix.file), plan_id=fix.plan.plan_id,
            goes=self._who_goes(fix.plan), digest=_digest(fix),
        )  # fmt: skip


def _digest(fix: Fix) -> str:
    said = msgspec.json.encode((fix.service, fix.plan.plan_id, fix.text, fix.new_text))
    return hashlib.sha256(said).hexdigest()[:24]
