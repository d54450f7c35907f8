"""A fix in two steps: what would change is told with a digest; who names that has it tried. For pages, agents and verbs.

The daemon follows what it began, so that nobody has to wait for it: once the service is READY by its gate, the change is
written into stoker.toml; else what ran before runs again, and the file stays as it is. A daemon that ends meanwhile leaves
the fix to the next one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from stoker.config import Paths, read_config
from stoker.errors import Refused, StokerError
from stoker.flows.failing import diagnose_beside
from stoker.flows.fix_file import forget_fix, keep_fix, read_kept_fix
from stoker.records import RESTING, State, SwitchView, Wish
from stoker.records.fixing import FixOutcome, FixTried, FixView, SavedFix
from stoker.supervise.supervisor import Supervisor

if TYPE_CHECKING:
    from stoker.flows.fixing import Fix

LOOK_S = 30.0
Ending = tuple[FixOutcome, str]
logger = logging.getLogger("stoker.daemon")


class FixTrials:
    """Proposes fixes, and tries those that are agreed to; `last` is what was tried last, under way or over."""

    def __init__(self, paths: Paths, supervisor: Supervisor, switch: Callable[[Wish], Awaitable[SwitchView]]) -> None:
        self.last: FixTried | None = None
        self._paths, self._supervisor, self._switch = paths, supervisor, switch
        self._begun: asyncio.Queue[tuple[SavedFix, SwitchView]] = asyncio.Queue()
        self._ended = asyncio.Event()

    async def propose(self, service: str) -> FixView:
        """Returns what would mend a service's last failure; raises Refused where no change of its table does."""
        return self._view(await self._read(service))

    async def begin(self, service: str, digest: str) -> SwitchView:
        """Begins to try what the digest stands for; raises Refused where it would be something else by now."""
        from stoker.flows.fixing import digest_of

        fix = await self._read(service)
        if digest_of(fix) != digest:
            raise Refused(
                f"what would mend {service} is not what was shown", why="its log, its plan or stoker.toml changed meanwhile",
                next_step="look again, and decide anew",
            )  # fmt: skip
        view = await self._switch(fix.wish)
        self.last = FixTried(service, fix.cause.rule, view.since)
        saved = SavedFix(self.last, view.plan_id, str(fix.file), fix.text, fix.new_text, fix.lines)
        keep_fix(self._paths.fix_file, saved)
        self._begun.put_nowait((saved, view))
        return view

    async def await_end(self, since: float, limit_s: float) -> FixTried | None:
        """Returns the last fix once the one begun then is over, or as it is where that is another, or after the limit."""
        last, ended = self.last, self._ended
        if last is not None and last.since == since and last.outcome is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limit_s):
                    await ended.wait()
        return self.last

    async def run(self) -> None:
        """Follows what a former daemon left, then what is begun, until cancelled."""
        if (saved := read_kept_fix(self._paths.fix_file)) is not None:
            self.last = saved.tried
            await self._supervisor.await_begun()
            self._end(saved.tried, await self._resume(saved))
        while True:
            saved, view = await self._begun.get()
            self._end(saved.tried, await self._follow(saved, view))

    def _end(self, tried: FixTried, ending: Ending) -> None:
        outcome, why = ending
        logger.info("service=%s fix=%s outcome=%s why=%s", tried.service, tried.rule, outcome, why)
        if self.last is tried:  # else the next one has begun, and is kept in its place
            self.last = msgspec.structs.replace(tried, outcome=outcome, why=why)
            forget_fix(self._paths.fix_file)
        self._ended.set()
        self._ended = asyncio.Event()

    async def _resume(self, saved: SavedFix) -> Ending:
        """Follows a fix during which a daemon ended: its switch goes on, or is over and nobody was there to write."""
        view = self._supervisor.switcher.view
        if view is not None and view.plan_id == saved.plan_id:
            return await self._follow(saved, view)
        owner = self._supervisor.owners.get(saved.tried.service)
        if owner is None or owner.plan.plan_id != saved.plan_id:
            return "not applied", "the daemon ended meanwhile, and the service runs by another plan"
        while owner.service.state not in RESTING | {State.READY}:
            await owner.await_change(LOOK_S)
        if owner.service.state is not State.READY:
            return "not applied", f"the daemon ended meanwhile, and it is {owner.service.state}: {owner.service.why}"
        return await self._write(saved)

    async def _follow(self, saved: SavedFix, view: SwitchView) -> Ending:
        while view.outcome is None:
            view = await self._supervisor.switcher.await_change(len(view.steps), view.since, LOOK_S) or view
        return await self._write(saved) if view.outcome == "ready" else ("not applied", view.why)

    async def _write(self, saved: SavedFix) -> Ending:
        from stoker.flows.fixing import write_fix

        try:
            backup = await asyncio.to_thread(write_fix, saved)
        except StokerError as problem:
            return "not written", f"{problem.what}; {problem.next_step or problem.why}"
        return "written", f"the change stands in {saved.file}; as it was before: {backup}"

    async def _read(self, service: str) -> Fix:
        from stoker.flows.fixing import find_fix

        told = await diagnose_beside(self._paths, service)
        return await asyncio.to_thread(lambda: find_fix(self._paths, read_config(self._paths.config), service, told))

    def _view(self, fix: Fix) -> FixView:
        from stoker.flows.fixing import digest_of

        cause = fix.cause
        return FixView(
            service=fix.service, rule=cause.rule, title=cause.title, confidence=cause.confidence, because=cause.cause,
            settings=fix.settings, lines=fix.lines, file=str(fix.file), plan_id=fix.plan.plan_id,
            goes=self._supervisor.who_goes(fix.plan), digest=digest_of(fix),
        )  # fmt: skip
