"""What the tools of one session share: where things are, who asks, how often, and what was proposed."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from stoker.config import Paths
from stoker.errors import Refused

if TYPE_CHECKING:
    from stoker.flows.proposals import Proposals

BURST, REFILL_S = 30, 0.5


class Pace:
    """Lets an agent ask `BURST` times at once and then every `REFILL_S`; one that asks in a circle is told to stop.

    A brake and no lock: of two calls at the very same moment both may be let through.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left, self._at = float(BURST), clock()

    def take(self) -> None:
        """Counts a call; raises Refused where there were too many."""
        now = self._clock()
        self._left = min(BURST, self._left + (now - self._at) / REFILL_S)
        self._at = now
        if self._left < 1:
            raise Refused(
                "too many calls", why=f"{BURST} at once and then one every {REFILL_S:g} s are answered",
                next_step=f"wait {(1 - self._left) * REFILL_S:.1f} s; asking the same again brings nothing new",
            )  # fmt: skip
        self._left -= 1


class Desk:
    """One session's. `who` is what the client calls itself."""

    def __init__(self, paths: Paths, *, may_act: bool) -> None:
        self.paths = paths
        self.may_act = may_act
        self.who = "unnamed client"
        self.pace = Pace()

    @cached_property
    def proposals(self) -> Proposals:
        """What waits to be confirmed."""
        from stoker.flows.proposals import Proposals  # it can plan, which only who acts waits for

        return Proposals(self.paths, self.who)
