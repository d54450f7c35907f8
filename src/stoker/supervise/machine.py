"""The life of a service as a pure function: `step(service, event) -> (service, job)`.

    STOPPED -> WAITING_FOR_MEMORY -> STARTING -> LOADING -> PROVING -> READY -> DRAINING -> STOPPING -> SETTLING -> STOPPED

Every way out of a launch leads through STOPPING (nothing of the engine's processes is left) and SETTLING (its memory is
back); `then` says what follows: STOPPED, FAILED, BACKOFF, or WAITING_FOR_MEMORY when a start was asked for meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto

import msgspec

from stoker.records import Record, Service, State


class Event(Record, frozen=True):
    """Something that happened to a service; `at` is seconds since the epoch.

    `code` is the exit code for whoever waits for the service: 0 no fault, 1 a fault, 3 it cannot work, 4 a limit ran out.
    """

    at: float
    why: str = ""
    code: int = 0


class StartAsked(Event, frozen=True):
    """Somebody wants the service up."""


class StopAsked(Event, frozen=True):
    """Somebody wants the service down."""


class PauseAsked(Event, frozen=True):
    """The daemon ends: the engine stops, and the next daemon starts it again."""


class Adopted(Event, frozen=True):
    """An engine of a former daemon was found alive."""


class MemoryFree(Event, frozen=True):
    """There is room for the engine."""


class MemoryRefused(Event, frozen=True):
    """There is no room for the engine, and waiting did not help."""

    code: int = 1


class Spawned(Event, frozen=True):
    """The engine's process runs."""


class SpawnFailed(Event, frozen=True):
    """The engine's process could not be started."""

    code: int = 1


class Healthy(Event, frozen=True):
    """The engine says that it is ready, which proves nothing yet."""


class Proved(Event, frozen=True):
    """The engine gave real tokens of the model asked for."""


class Unfit(Event, frozen=True):
    """The engine did not load or did not prove itself in time."""

    code: int = 1


class Exited(Event, frozen=True):
    """The engine's process ended by itself."""

    code: int = 1
    launch: int = 0


class MemoryLow(Event, frozen=True):
    """The engine eats what has to stay free for the system."""

    code: int = 1


class Frozen(Event, frozen=True):
    """The engine has requests and does nothing about them."""

    code: int = 1


class RestartAsked(Event, frozen=True):
    """The engine does not do as it did, and a new one would: what it answers now may end first."""


class Drained(Event, frozen=True):
    """No request is left, or the limit for waiting ran out."""


class GroupGone(Event, frozen=True):
    """No process of the launch is left."""


class GroupStuck(Event, frozen=True):
    """Processes of the launch outlived SIGKILL."""

    code: int = 1


class Settled(Event, frozen=True):
    """The memory is back; `told` is what its log says of why it failed."""

    told: str = ""


class NotSettled(Event, frozen=True):
    """The memory did not come back in time."""

    code: int = 1


class BackoffOver(Event, frozen=True):
    """The pause before a restart is over."""


class Job(Enum):
    """The work that a state stands for; its owner runs it and sends back the event it ends with."""

    AWAIT_MEMORY = auto()
    SPAWN = auto()
    AWAIT_HEALTH = auto()
    PROVE = auto()
    DRAIN = auto()
    STOP_GROUP = auto()
    SETTLE = auto()
    BACK_OFF = auto()


JOBS = {
    State.WAITING_FOR_MEMORY: Job.AWAIT_MEMORY,
    State.STARTING: Job.SPAWN,
    State.LOADING: Job.AWAIT_HEALTH,
    State.PROVING: Job.PROVE,
    State.DRAINING: Job.DRAIN,
    State.STOPPING: Job.STOP_GROUP,
    State.SETTLING: Job.SETTLE,
    State.BACKOFF: Job.BACK_OFF,
}

COMING_UP = (State.WAITING_FOR_MEMORY, State.STARTING, State.LOADING, State.PROVING, State.READY)
WITH_ENGINE = (State.STARTING, State.LOADING, State.PROVING, State.READY, State.DRAINING)


class Policy(Record, frozen=True):
    """How often an engine that was READY may be started again by itself, within `window_s`."""

    restarts: int = 3
    window_s: float = 600.0


def step(service: Service, event: Event, policy: Policy = Policy()) -> tuple[Service, Job | None]:  # noqa: B008
    """Returns the service after an event, and the job to begin if it entered another state.

    An event that means nothing in this state (the late answer of a job that is no longer wanted) changes nothing.
    """
    move = MOVES.get((service.state, type(event)))
    if move is None or (isinstance(event, Exited) and event.launch != service.launch):
        return service, None
    after = move(service, event, policy)
    return after, JOBS.get(after.state) if after.state is not service.state else None


Move = Callable[[Service, Event, Policy], Service]


def _to(service: Service, state: State, event: Event, **changes: object) -> Service:
    return msgspec.structs.replace(service, state=state, since=event.at, why=event.why, code=event.code, **changes)


def _go(state: State) -> Move:
    def move(service: Service, event: Event, policy: Policy) -> Service:
        return _to(service, state, event)

    return move


def _start(service: Service, event: Event, policy: Policy) -> Service:
    return _to(service, State.WAITING_FOR_MEMORY, event, wanted=True, restarts=())


def _want(service: Service, event: Event, policy: Policy) -> Service:
    return service if service.wanted else msgspec.structs.replace(service, wanted=True)


def _unwant(service: Service, event: Event, policy: Policy) -> Service:
    return msgspec.structs.replace(service, wanted=False) if service.wanted else service


def _start_later(service: Service, event: Event, policy: Policy) -> Service:
    return msgspec.structs.replace(service, wanted=True, restarts=(), then=State.WAITING_FOR_MEMORY, then_why=event.why)


def _launch(service: Service, event: Event, policy: Policy) -> Service:
    return _to(service, State.STARTING, event, launch=service.launch + 1, was_ready=False)


def _ready(service: Service, event: Event, policy: Policy) -> Service:
    return _to(service, State.READY, event, was_ready=True)


def _fail(service: Service, event: Event, policy: Policy) -> Service:
    return _to(service, State.FAILED, event)


def _end_without_engine(service: Service, event: Event, policy: Policy) -> Service:
    return _to(service, State.STOPPED, event, wanted=isinstance(event, PauseAsked) and service.wanted)


def _drain(service: Service, event: Event, policy: Policy) -> Service:
    return _leave(service, State.DRAINING, event, State.STOPPED)


def _stop(service: Service, event: Event, policy: Policy) -> Service:
    return _leave(service, State.STOPPING, event, State.STOPPED)


def _stop_later(service: Service, event: Event, policy: Policy) -> Service:
    return msgspec.structs.replace(service, wanted=False, then=State.STOPPED, then_why=event.why, then_code=event.code)


def _pause_later(service: Service, event: Event, policy: Policy) -> Service:
    if service.then is State.FAILED:  # the next daemon is not to try again what has failed
        return service
    return msgspec.structs.replace(service, then=State.STOPPED, then_why=event.why, then_code=event.code)


def _restart_wedged(service: Service, event: Event, policy: Policy) -> Service:
    return _to(_start_later(service, event, policy), State.STOPPING, event)


def _leave(service: Service, state: State, event: Event, then: State) -> Service:
    stops = isinstance(event, StopAsked)
    return _to(
        service, state, event, then=then, then_why=event.why, then_code=event.code, wanted=service.wanted and not stops
    )


def _fault(service: Service, event: Event, policy: Policy) -> Service:
    if service.state is State.DRAINING:  # it was to end anyway
        return _to(service, State.STOPPING, event)
    then, restarts = _after_a_fault(service, event, policy)
    return msgspec.structs.replace(_leave(service, State.STOPPING, event, then), restarts=restarts)


def _restart(service: Service, event: Event, policy: Policy) -> Service:
    then, restarts = _after_a_fault(service, event, policy)
    if then is State.FAILED:  # it answers, if not well: without a budget it is left as it is
        return service
    return msgspec.structs.replace(_leave(service, State.DRAINING, event, then), restarts=restarts)


def _after_a_fault(service: Service, event: Event, policy: Policy) -> tuple[State, tuple[float, ...]]:
    recent = recent_restarts(service, event.at, policy.window_s)
    # An engine that never answered will not answer the next time either: only one that was READY is worth a restart.
    worth_it = service.wanted and (service.was_ready or bool(service.restarts))
    if worth_it and len(recent) < policy.restarts:
        return State.BACKOFF, (*recent, event.at)
    return State.FAILED, recent


def recent_restarts(service: Service, at: float, window_s: float) -> tuple[float, ...]:
    """Returns when a service was restarted after faults, within the window that ends at a moment."""
    return tuple(one for one in service.restarts if one > at - window_s)


def _settled(service: Service, event: Event, policy: Policy) -> Service:
    why = service.then_why or event.why
    told = event.told if isinstance(event, Settled) and service.then is State.FAILED else ""
    settled = _to(service, service.then, msgspec.structs.replace(event, why=f"{why}: {told}" if told else why))
    return msgspec.structs.replace(settled, code=service.then_code)


def backoff_s(service: Service) -> float:
    """Returns how long to pause before the next restart: 1, 2, 4 ... 60 seconds."""
    return float(min(60, 2 ** max(0, len(service.restarts) - 1)))


MOVES: dict[tuple[State, type[Event]], Move] = {
    (State.STOPPED, StartAsked): _start,
    (State.STOPPED, StopAsked): _unwant,
    (State.STOPPED, Adopted): _go(State.LOADING),
    (State.FAILED, StartAsked): _start,
    (State.FAILED, StopAsked): _end_without_engine,
    (State.BACKOFF, StartAsked): _start,
    (State.BACKOFF, StopAsked): _end_without_engine,
    (State.BACKOFF, PauseAsked): _end_without_engine,
    (State.BACKOFF, BackoffOver): _go(State.WAITING_FOR_MEMORY),
    (State.WAITING_FOR_MEMORY, StopAsked): _end_without_engine,
    (State.WAITING_FOR_MEMORY, PauseAsked): _end_without_engine,
    (State.WAITING_FOR_MEMORY, MemoryFree): _launch,
    (State.WAITING_FOR_MEMORY, MemoryRefused): _fail,
    (State.STARTING, Spawned): _go(State.LOADING),
    (State.STARTING, SpawnFailed): _fault,
    (State.LOADING, Healthy): _go(State.PROVING),
    (State.LOADING, Unfit): _fault,
    (State.PROVING, Proved): _ready,
    (State.PROVING, Unfit): _fault,
    (State.READY, StopAsked): _drain,
    (State.READY, PauseAsked): _drain,
    (State.READY, Frozen): _fault,
    (State.READY, RestartAsked): _restart,
    (State.DRAINING, Drained): lambda service, event, policy: _to(service, State.STOPPING, event),
    (State.DRAINING, StopAsked): _stop,
    (State.DRAINING, PauseAsked): _stop,
    (State.DRAINING, StartAsked): _start_later,
    (State.STOPPING, GroupGone): _go(State.SETTLING),
    (State.STOPPING, GroupStuck): _go(State.WEDGED),
    (State.SETTLING, Settled): _settled,
    (State.SETTLING, NotSettled): _go(State.WEDGED),
    (State.WEDGED, StartAsked): _restart_wedged,
    (State.WEDGED, StopAsked): _stop,
    **{(state, kind): _fault for state in WITH_ENGINE for kind in (Exited, MemoryLow)},
    **{(state, kind): _stop for state in (State.STARTING, State.LOADING, State.PROVING) for kind in (StopAsked, PauseAsked)},
    **{(state, StopAsked): _stop_later for state in (State.STOPPING, State.SETTLING)},
    **{(state, PauseAsked): _pause_later for state in (State.STOPPING, State.SETTLING)},
    **{(state, StartAsked): _start_later for state in (State.STOPPING, State.SETTLING)},
    **{(state, StartAsked): _want for state in COMING_UP},
}
