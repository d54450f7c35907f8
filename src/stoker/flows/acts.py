"""What an agent's acts are: what each would do, told before it is done, and how each is begun.

An act is for a service that stoker.toml names (or the demo), so that no agent brings a program or a model of its own; what
a fix changes there is a rule's word, not an agent's.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from stoker.config import Config, Paths, read_config
from stoker.errors import Refused, WrongUse, service_hint
from stoker.flows.client import Daemon, read_daemon
from stoker.flows.fixing import Fix, await_written, begin_fix, propose_fix
from stoker.flows.planning import find_wish, make_plan, served_names
from stoker.flows.running import read_claims
from stoker.flows.status import read_status
from stoker.flows.switch import check_switched, follow_switch
from stoker.flows.targets import read_running
from stoker.flows.up import ensure_daemon
from stoker.records import RESTING, Plan, ServiceView, SwitchView, Wish
from stoker.records.proposals import ActName, Proposal

EXPIRES_S = 120.0
TOKEN_BYTES = 12


class Begun(NamedTuple):
    """What happens now; `rest` sees to its end what has to be seen through, and says how that was."""

    outcome: str
    rest: Callable[[], str] | None = None


def propose_act(paths: Paths, act: ActName, service: str) -> Proposal:
    """Returns what an act would do; raises Refused or WrongUse where it cannot be done."""
    if act == "stop":
        return _propose_stop(paths, service)
    return _propose_fix(paths, service) if act == "fix" else _propose_start(paths, act, service)


def do_act(paths: Paths, proposal: Proposal) -> Begun:
    """Begins what was proposed; raises Refused where that is no longer what would happen."""
    if proposal.act == "stop":
        _check_same(proposal, _read_running(paths, proposal.service).plan_id)
        return Begun(f"it is {read_running(paths).down(proposal.service).state}")
    return _do_fix(paths, proposal) if proposal.act == "fix" else _do_start(paths, proposal)


def _propose_start(paths: Paths, act: ActName, service: str) -> Proposal:
    _, plan = _plan(paths, service)
    others = _others(paths, service)
    what = f"`{service}` is started once its memory is free; what runs goes on"
    if act == "switch":
        what = f"`{service}` is started; of {', '.join(others) or 'no others'} those are stopped that leave it no room"
    return _of_plan(act, plan, what, others if act == "switch" else ())


def _propose_fix(paths: Paths, service: str) -> Proposal:
    fix = _find_fix(paths, service)
    what = (
        f"`{service}` is started as changed, because: {fix.cause.title}. Once it is READY, {fix.file} is changed too; "
        "where it does not get there, what ran before runs again and the file stays as it is"
    )
    told = _of_plan("fix", fix.plan, what, _others(paths, service))
    return msgspec.structs.replace(told, rule=fix.cause.rule, settings=fix.settings, lines=fix.lines)


def _of_plan(act: ActName, plan: Plan, what: str, goes: tuple[str, ...]) -> Proposal:
    return Proposal(
        act, plan.service, what, secrets.token_urlsafe(TOKEN_BYTES), EXPIRES_S, plan.plan_id, plan.engine, plan.model,
        plan.memory_need_bytes, goes=goes,
    )  # fmt: skip


def _propose_stop(paths: Paths, service: str) -> Proposal:
    view = _read_running(paths, service)
    what = f"`{service}` ends its requests, then stops, and its memory comes back; nothing starts in its place"
    return Proposal(
        "stop", service, what, secrets.token_urlsafe(TOKEN_BYTES), EXPIRES_S, view.plan_id, view.engine, view.model,
        view.memory_need_bytes, view.state, (service,),
    )  # fmt: skip


def _do_start(paths: Paths, proposal: Proposal) -> Begun:
    wish, plan = _plan(paths, proposal.service)
    _check_same(proposal, plan.plan_id)
    daemon = ensure_daemon(paths)
    if proposal.act == "switch":
        return Begun(_say_switch(daemon.switch(wish)))
    return Begun(f"it is {daemon.up(wish).state}")


def _do_fix(paths: Paths, proposal: Proposal) -> Begun:
    fix = _find_fix(paths, proposal.service)
    _check_same(proposal, fix.plan.plan_id)
    if fix.lines != proposal.lines:
        raise Refused(f"{fix.file} would be changed otherwise by now", next_step="propose it again")
    daemon = ensure_daemon(paths)
    view = begin_fix(daemon, fix)
    return Begun(_say_switch(view), lambda: _finish_fix(daemon, view))


def _finish_fix(daemon: Daemon, view: SwitchView) -> str:
    for now in follow_switch(daemon, view):
        view = now
    check_switched(view)
    return f"{view.service} is READY, and {await_written(daemon, view)}"


def _say_switch(view: SwitchView) -> str:
    return f"the switch is under way; {', '.join(view.goes) or 'nothing'} has to go"


def _find_fix(paths: Paths, service: str) -> Fix:
    config = read_config(paths.config)
    _check_known(service, config)
    return propose_fix(paths, config, service)


def _plan(paths: Paths, service: str) -> tuple[Wish, Plan]:
    config = read_config(paths.config)
    _check_known(service, config)
    wish = find_wish(service, config)
    return wish, make_plan(wish)


def _check_known(service: str, config: Config) -> None:
    known = served_names(config)
    if service not in known:
        hint = service_hint(service, known, f"services of stoker.toml: {', '.join(known)}")
        raise WrongUse(f"there is no service called `{service}`", next_step=hint)


def _others(paths: Paths, service: str) -> tuple[str, ...]:
    return tuple(one.service for one in read_claims(paths) if one.service != service)


def _read_running(paths: Paths, service: str) -> ServiceView:
    services = read_status(paths).services if read_daemon(paths) else ()
    view = next((one for one in services if one.name == service), None)
    if view is None or view.state in RESTING:
        states = ", ".join(f"{one.name} ({one.state})" for one in services) or "none"
        raise Refused(f"{service} does not run", why=f"services here: {states}")
    return view


def _check_same(proposal: Proposal, plan_id: str) -> None:
    if plan_id != proposal.plan_id:
        raise Refused(
            f"{proposal.service} would run by another plan by now",
            why=f"{proposal.plan_id} was proposed, and it is {plan_id}: stoker.toml, the model or the machine changed",
            next_step="propose it again",
        )
