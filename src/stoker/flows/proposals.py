"""Acts in two steps: what would happen is told with a token, and only that token makes it happen, once and soon.

Between the two stands whoever watches the agent: its client shows each call, and the second names what the first told.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from stoker.box import clock_s
from stoker.config import Paths
from stoker.errors import Refused, StokerError
from stoker.flows.acts import EXPIRES_S, Begun, do_act, propose_act
from stoker.flows.ownership import make_state_folder
from stoker.records.proposals import ActName, Audited, Proposal
from stoker.store.audit import write_audit

MOST_OPEN = 20
FOLLOW_S = 45.0  # so long a call waits for an act's end; common clients give a call up after 60 s


class Proposals:
    """What was proposed in one session and waits to be confirmed. `who` is what the client calls itself."""

    def __init__(self, paths: Paths, who: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._paths = paths
        self._who = who
        self._clock = clock
        self._open: dict[str, tuple[Proposal, float]] = {}
        # Python joins these threads before it exits, so that an agent which leaves breaks nothing off.
        self._follower = ThreadPoolExecutor(1, thread_name_prefix="act")

    def propose(self, act: ActName, service: str) -> Proposal:
        """Returns what would happen; raises Refused or WrongUse where it cannot."""
        proposal = propose_act(self._paths, act, service)
        self._audit(proposal, "proposed")
        while len(self._open) >= MOST_OPEN:
            del self._open[next(iter(self._open))]
        self._open[proposal.token] = proposal, self._clock() + EXPIRES_S
        return proposal

    def confirm(self, token: str, follow_s: float = FOLLOW_S) -> tuple[Proposal, str]:
        """Does what a token stands for, and returns it with what happens now; raises Refused where that is no longer so."""
        proposal, until = self._open.pop(token, (None, 0.0))
        if proposal is None or self._clock() > until:
            raise Refused(
                "there is no proposal with this token",
                why=f"a token is good once, for {EXPIRES_S:.0f} s, in the session that proposed it",
                next_step="propose it again, and look whether it still says the same",
            )
        self._audit(proposal, "confirmed")
        outcome, rest = self._recorded(proposal, "begun", lambda: do_act(self._paths, proposal))
        return proposal, outcome if rest is None else self._follow(proposal, rest, follow_s)

    def _follow(self, proposal: Proposal, rest: Callable[[], str], follow_s: float) -> str:
        """Returns how an act ended; where that takes long, that it goes on without anybody who waits for it."""
        ending = self._follower.submit(self._recorded, proposal, "done", lambda: Begun(rest()))
        try:
            return ending.result(follow_s).outcome
        except TimeoutError:
            return f"{proposal.service} is still on its way; its end is seen to and recorded while this session lives"

    def _recorded(self, proposal: Proposal, word: str, act: Callable[[], Begun]) -> Begun:
        try:
            begun = act()
        except StokerError as problem:
            self._audit(proposal, f"failed: {problem.what}")
            raise
        self._audit(proposal, f"{word}: {begun.outcome}")
        return begun

    def _audit(self, proposal: Proposal, outcome: str) -> None:
        make_state_folder(self._paths)
        told = Audited(clock_s(), self._who, proposal.act, proposal.service, proposal.plan_id, outcome)
        write_audit(self._paths.audit, told)
