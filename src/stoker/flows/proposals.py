"""Acts in two steps: what would happen is told with a token, and only that token makes it happen, once and soon.

Between the two stands whoever watches the agent: its client shows each call, and the second names what the first told.
An act is for a service that stoker.toml names (or the demo), so that no agent brings a program or a model of its own.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from stoker.box import clock_s
from stoker.config import DEMO, Paths, read_config
from stoker.errors import Refused, StokerError, WrongUse
from stoker.flows.client import read_daemon
from stoker.flows.ownership import make_state_folder
from stoker.flows.planning import find_wish, make_plan
from stoker.flows.running import read_claims
from stoker.flows.status import read_status
from stoker.flows.targets import read_running
from stoker.flows.up import ensure_daemon
from stoker.records import RESTING, Plan, ServiceView, Wish
from stoker.records.proposals import ActName, Audited, Proposal
from stoker.store.audit import write_audit

EXPIRES_S = 120.0
MOST_OPEN = 20


class Proposals:
    """What was proposed in one session and waits to be confirmed. `who` is what the client calls itself."""

    def __init__(self, paths: Paths, who: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._paths = paths
        self._who = who
        self._clock = clock
        self._open: dict[str, tuple[Proposal, float]] = {}

    def propose(self, act: ActName, service: str) -> Proposal:
        """Returns what would happen; raises Refused or WrongUse where it cannot."""
        proposal = self._stop(service) if act == "stop" else self._start(act, service)
        self._audit(proposal, "proposed")
        while len(self._open) >= MOST_OPEN:
            del self._open[next(iter(self._open))]
        self._open[proposal.token] = proposal, self._clock() + EXPIRES_S
        return proposal

    def confirm(self, token: str) -> tuple[Proposal, str]:
        """Does what a token stands for, and returns it with what happens now; raises Refused where that is no longer so."""
        proposal, until = self._open.pop(token, (None, 0.0))
        if proposal is None or self._clock() > until:
            raise Refused(
                "there is no proposal with this token",
                why=f"a token is good once, for {EXPIRES_S:.0f} s, in the session that proposed it",
                next_step="propose it again, and look whether it still says the same",
            )
        self._audit(proposal, "confirmed")
        try:
            outcome = self._do(proposal)
        except StokerError as problem:
            self._audit(proposal, f"failed: {problem.what}")
            raise
        self._audit(proposal, f"begun: {outcome}")
        return proposal, outcome

    def _start(self, act: ActName, service: str) -> Proposal:
        _, plan = self._plan(service)
        claims = read_claims(self._paths)
        others = tuple(one.service for one in claims if one.service != service)
        what = f"`{service}` is started once its memory is free; what runs goes on"
        if act == "switch":
            what = f"`{service}` is started; of {', '.join(others) or 'no others'} those are stopped that leave it no room"
        return Proposal(
            act, service, what, secrets.token_urlsafe(12), EXPIRES_S, plan.plan_id, plan.engine, plan.model,
            plan.memory_need_bytes, goes=others if act == "switch" else (),
        )  # fmt: skip

    def _stop(self, service: str) -> Proposal:
        view = self._running(service)
        what = f"`{service}` ends its requests, then stops, and its memory comes back; nothing starts in its place"
        return Proposal(
            "stop", service, what, secrets.token_urlsafe(12), EXPIRES_S, view.plan_id, view.engine, view.model,
            view.memory_need_bytes, view.state, (service,),
        )  # fmt: skip

    def _do(self, proposal: Proposal) -> str:
        if proposal.act == "stop":
            self._check_same(proposal, self._running(proposal.service).plan_id)
            return f"it is {read_running(self._paths).down(proposal.service).state}"
        wish, plan = self._plan(proposal.service)
        self._check_same(proposal, plan.plan_id)
        daemon = ensure_daemon(self._paths)
        if proposal.act == "switch":
            view = daemon.switch(wish)
            return f"the switch is under way; {', '.join(view.goes) or 'nothing'} has to go"
        return f"it is {daemon.up(wish).state}"

    def _plan(self, service: str) -> tuple[Wish, Plan]:
        config = read_config(self._paths.config)
        if service not in {*config.services, DEMO}:
            known = ", ".join(sorted({*config.services, DEMO}))
            raise WrongUse(f"there is no service called `{service}`", next_step=f"services of stoker.toml: {known}")
        wish = find_wish(service, config)
        return wish, make_plan(wish)

    def _running(self, service: str) -> ServiceView:
        services = read_status(self._paths).services if read_daemon(self._paths) else ()
        view = next((one for one in services if one.name == service), None)
        if view is None or view.state in RESTING:
            states = ", ".join(f"{one.name} ({one.state})" for one in services) or "none"
            raise Refused(f"{service} does not run", why=f"services here: {states}")
        return view

    def _check_same(self, proposal: Proposal, plan_id: str) -> None:
        if plan_id != proposal.plan_id:
            raise Refused(
                f"{proposal.service} would run by another plan by now",
                why=f"{proposal.plan_id} was proposed, and it is {plan_id}: stoker.toml, the model or the machine changed",
                next_step="propose it again",
            )

    def _audit(self, proposal: Proposal, outcome: str) -> None:
        make_state_folder(self._paths)
        told = Audited(clock_s(), self._who, proposal.act, proposal.service, proposal.plan_id, outcome)
        write_audit(self._paths.audit, told)
