"""A service while it lives: its state, its process, its proof."""

from __future__ import annotations

from enum import StrEnum

from stoker.records.base import Record
from stoker.records.plan import Plan


class State(StrEnum):
    """Where a service is in its life; only READY means that clients are answered."""

    STOPPED = "STOPPED"
    WAITING_FOR_MEMORY = "WAITING_FOR_MEMORY"
    STARTING = "STARTING"
    LOADING = "LOADING"
    PROVING = "PROVING"
    READY = "READY"
    DRAINING = "DRAINING"
    STOPPING = "STOPPING"
    SETTLING = "SETTLING"
    FAILED = "FAILED"
    BACKOFF = "BACKOFF"
    WEDGED = "WEDGED"


RESTING = frozenset({State.STOPPED, State.FAILED, State.WEDGED})
AT_REST = RESTING | {State.READY}
BEING_STARTED = frozenset({State.WAITING_FOR_MEMORY, State.STARTING, State.LOADING, State.PROVING})
WITHOUT_ENGINE = frozenset({State.STOPPED, State.FAILED, State.BACKOFF, State.WAITING_FOR_MEMORY})


class Handle(Record, frozen=True):
    """What it takes to find an engine process again after the daemon was restarted.

    `marker` is in the environment of the engine and of all its children; `start_ticks` (clock ticks since boot) and
    `boot_id` tell a process from a later one that got the same pid. `memory_before_bytes` was available before the
    start, `memory_claim_bytes` less once the engine was ready; `anonymous_before_bytes` is what all processes held then.
    `container` is its container's id, where it runs in one. Of a card with memory of its own, `card_before_bytes` were free
    before the start and `card_held_before_bytes` held by all processes there (None: not asked, or nobody tells);
    `card_claim_bytes` less were free once the engine was ready. `beside` is a process, with its start time, that was
    started before the engine and has to live as long, such as Ray's head.
    """

    launch: int
    marker: str
    pid: int | None
    start_ticks: int | None
    boot_id: str
    port: int
    memory_before_bytes: int
    memory_claim_bytes: int = 0
    container: str | None = None
    anonymous_before_bytes: int | None = None
    card_before_bytes: int | None = None
    card_held_before_bytes: int | None = None
    card_claim_bytes: int = 0
    beside: tuple[int, int] | None = None


class GoodImage(Record, frozen=True):
    """An image in which a service was READY; it is kept under its id, so that the service can go back to it.

    `name` is what the service asked for, `image_id` what that was then, `digest` the registry's name for it, if known.
    """

    service: str
    name: str
    image_id: str
    digest: str | None
    at: float


class Service(Record, frozen=True):
    """The whole state of a service: what `supervise.machine.step` takes and returns."""

    state: State
    since: float
    why: str
    wanted: bool = False
    launch: int = 0
    was_ready: bool = False
    then: State = State.STOPPED
    then_why: str = ""
    then_code: int = 0
    code: int = 0
    restarts: tuple[float, ...] = ()

    @property
    def serves(self) -> bool:
        """Tells whether its engine answered before and still runs: READY, or taken back from a former daemon."""
        return self.state is State.READY or (self.was_ready and self.state in (State.LOADING, State.PROVING))


class Measured(Record, frozen=True):
    """The most memory that a start by one plan took, from before it until its first answer."""

    plan_id: str
    claim_bytes: int


class SavedService(Record, frozen=True):
    """A service as the store keeps it; `good` are the last plans by which it was READY, the newest last."""

    plan: Plan
    service: Service
    handle: Handle | None = None
    good: tuple[Plan, ...] = ()
    measured: Measured | None = None


class SavedSwitch(Record, frozen=True):
    """A switch that is not over, as the store keeps it: the plan to come, who stops for it, and what ran before.

    `back_because` is why it goes back to what ran before; empty: it does not.
    """

    plan: Plan
    goes: tuple[str, ...] = ()
    before: tuple[Plan, ...] = ()
    back_because: str = ""
    code: int = 0


class Proof(Record, frozen=True):
    """That a model answered: what came back, and how long the first token and the whole answer took."""

    model: str
    text: str
    tokens: int
    ttft_s: float
    took_s: float = 0.0


class Endpoint(Record, frozen=True):
    """Where an engine answers, and for whom; `key` is what it asks for where that is not Stoker's own.

    `reuses_connections`: a connection may be kept for a next request, which costs this engine nothing.
    `box`: it is a service of another box, which is asked over TLS; `pin` is the SHA-256 of that box's certificate, and
    `changes` what the box says that it changes in requests and replies.
    """

    service: str
    model: str
    revision: str
    plan_id: str
    host: str
    port: int
    key: str | None = None
    reuses_connections: bool = True
    box: str = ""
    pin: str = ""
    changes: str = ""
