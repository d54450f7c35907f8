"""A service as people see it: what it waits for, and what is wrong beside it."""

from __future__ import annotations

from stoker.records import Plan, Service, ServiceView, State, say_bytes
from stoker.supervise.card import describe_card
from stoker.supervise.hands import Hands
from stoker.supervise.runtimes.ranked import RankedRunning
from stoker.supervise.runtimes.unit import runs_unasked
from stoker.supervise.waits import describe_wait

SLOW = "NET/Socket"
ITS_TURN = "its turn; one service is started at a time"
WITHOUT_UNIT = frozenset({State.STOPPED, State.FAILED, State.BACKOFF})


def view_of(hands: Hands, service: Service, in_the_way: tuple[str, ...], store_problem: str | None) -> ServiceView:
    """Returns the view; `in_the_way` are the services that a switch to this one would stop."""
    plan, handle, running = hands.plan, hands.handle, hands.running
    problems = (hands.log.problem, store_problem, _stray(hands, service), _slow_way(hands))
    return ServiceView(
        name=plan.service,
        model=plan.model,
        engine=plan.engine,
        engine_version=plan.engine_version,
        awaits=_awaits(hands, service, in_the_way),
        state=service.state,
        since=service.since,
        why=service.why,
        address=f"http://127.0.0.1:{handle.port}" if handle and running and plan.seat is None else None,
        pid=handle.pid if handle and running else None,
        memory_bytes=hands.seen_bytes,
        memory_need_bytes=plan.memory_need_bytes,
        restarts=len(service.restarts),
        plan_id=plan.plan_id,
        exit_code=service.code,
        answers=plan.answers,
        warnings=tuple(problem for problem in problems if problem),
        kv_tokens=plan.kv_tokens,
        card_need_bytes=plan.card_need_bytes,
        transport=hands.transport if running else None,
        ranks=running.ranks if isinstance(running, RankedRunning) else (),
    )


def _awaits(hands: Hands, service: Service, in_the_way: tuple[str, ...]) -> str | None:
    if hands.waits_for_turn:
        return ITS_TURN
    if service.state is State.STARTING and hands.plan.parts:
        return _others(hands.plan)
    wait = describe_wait(service, hands.need_bytes, hands.tools.limits, hands.gate_step, _on_card(hands))
    if in_the_way:
        return f"{wait}; `stoker switch {hands.plan.service}` stops {' and '.join(in_the_way)} for it"
    return wait


def _others(plan: Plan) -> str:
    """What the head of several ranks waits for before its own engine is started."""
    boxes = " and ".join(part.box for part in plan.parts)
    return f"Ray's head here, and {boxes} to join it" if plan.ray else f"the ranks on {boxes} to be started"


def _on_card(hands: Hands) -> str:
    need_bytes, card = hands.plan.card_need_bytes, hands.card
    if not need_bytes:
        return ""
    return f", and {describe_card(need_bytes, card)}" if card else f", and {say_bytes(need_bytes)} on the card"


def _slow_way(hands: Hands) -> str | None:
    """Says where the ranks of a model do not use the fast link that their boxes have."""
    if not hands.plan.has_rdma or hands.transport != SLOW or hands.running is None:
        return None
    name = hands.plan.service
    return f"NCCL goes over {SLOW}, though each box has a port for RDMA that is up: `stoker diagnose {name}` says what to do"


def _stray(hands: Hands, service: Service) -> str | None:
    """Says where a unit was started by somebody else, past the wait for memory."""
    unit, name = hands.plan.unit, hands.plan.service
    if unit is None or hands.running is not None or service.state not in WITHOUT_UNIT or not runs_unasked(unit):
        return None
    return f"{unit} runs, started by somebody else: `stoker up {name}` takes it over, `systemctl stop` ends it"
