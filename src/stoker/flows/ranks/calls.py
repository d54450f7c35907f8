"""What the head says to the boxes that run the other ranks of a model, over their links."""

from __future__ import annotations

import asyncio
from collections import defaultdict

from stoker.config import Paths
from stoker.flows.boxes.linked import LinkedDaemon, find_linked
from stoker.flows.client import PLAN_LIMIT_S
from stoker.records import State
from stoker.records.rank_views import RankFacts, RankRenew, RankStart, RankView
from stoker.records.ranks import Part

SLACK_S = 5.0  # beyond the time for which a box was asked to wait
STOP_LIMIT_S = 15.0


class RankCalls:
    """One box's uses for ranks."""

    def __init__(self, box: LinkedDaemon) -> None:
        self._box = box

    def check_rank(self, service: str) -> RankFacts:
        """Returns what the box has for its part of a service."""
        return self._box.call("POST", f"/api/ranks/{service}/check", None, RankFacts, PLAN_LIMIT_S)

    def start_rank(self, start: RankStart) -> RankView:
        """Asks for a rank to be started."""
        return self._box.call("POST", f"/api/ranks/{start.ask.service}/start", start, RankView, PLAN_LIMIT_S)

    def renew_rank(self, service: str, renew: RankRenew) -> RankView:
        """Says that a rank is still wanted, and returns it once its state is another, or after the limit."""
        return self._box.call("POST", f"/api/ranks/{service}/renew", renew, RankView, renew.limit_s + SLACK_S)

    def stop_rank(self, service: str) -> RankView:
        """Asks for a rank to end."""
        return self._box.call("POST", f"/api/ranks/{service}/stop", None, RankView, STOP_LIMIT_S)


def find_calls(paths: Paths, box: str) -> RankCalls:
    """Returns a linked box's uses for ranks; raises WrongUse for one not known, Refused where the link may only look."""
    return RankCalls(find_linked(paths, box, act=True))


class LinkedCrew:
    """Speaks to the boxes of other ranks from the daemon's loop; also hears for the ranks that run here."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self.whole: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)

    async def start(self, part: Part, launch: str) -> RankView:
        """Asks for a rank to be started."""
        return await asyncio.to_thread(lambda: self._calls(part).start_rank(RankStart(part.ask, launch)))

    async def renew(self, part: Part, launch: str, seen: State | None, limit_s: float, is_whole: bool) -> RankView:
        """Says that a rank is still wanted; returns it once its state is not the one seen, or after the limit."""
        renew = RankRenew(launch, seen, limit_s, is_whole)
        return await asyncio.to_thread(lambda: self._calls(part).renew_rank(part.ask.service, renew))

    async def stop(self, part: Part) -> RankView:
        """Asks for a rank to end, and waits some seconds for it."""
        return await asyncio.to_thread(lambda: self._calls(part).stop_rank(part.ask.service))

    async def await_whole(self, service: str) -> None:
        """Returns once the head of a rank that runs here has had an answer of the whole."""
        await self.whole[service].wait()

    def _calls(self, part: Part) -> RankCalls:
        return find_calls(self._paths, part.box)
