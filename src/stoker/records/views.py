"""A service as people and programs see it."""

from __future__ import annotations

from typing import Literal

from stoker.records.base import Record
from stoker.records.boxes import BoxesView
from stoker.records.door import DoorView
from stoker.records.rank_views import RankView
from stoker.records.service import State
from stoker.records.workflow import IdleView, RunningView

SwitchOutcome = Literal["ready", "rolled back", "failed"]


class ServiceView(Record, frozen=True):
    """A service as people and programs see it. Times are seconds since the epoch; None is unknown.

    `kv_tokens` are those that its cache should hold, which its requests may have in flight where nothing else was said.
    Of `memory_need_bytes`, `card_need_bytes` lie on a graphics card that has memory of its own. Of a model over several
    boxes `ranks` are those on other boxes, and `transport` is what NCCL said that it goes over.
    """

    name: str
    model: str
    engine: str
    state: State
    since: float
    why: str
    address: str | None
    pid: int | None
    memory_bytes: int | None
    memory_need_bytes: int
    restarts: int
    plan_id: str
    exit_code: int
    answers: bool = True
    engine_version: str | None = None
    awaits: str | None = None
    warnings: tuple[str, ...] = ()
    kv_tokens: int | None = None
    card_need_bytes: int = 0
    transport: str | None = None
    ranks: tuple[RankView, ...] = ()


class SwitchView(Record, frozen=True):
    """A switch to a service: who goes for it, what was done so far, and how it ended (None: it is under way).

    `since`, `ended` and `waits_until` are seconds since the epoch.
    """

    service: str
    since: float
    goes: tuple[str, ...]
    plan_id: str
    steps: tuple[str, ...] = ()
    waits_until: float | None = None
    outcome: SwitchOutcome | None = None
    why: str = ""
    exit_code: int = 0
    ended: float | None = None


class GatewayView(Record, frozen=True):
    """Where the gateway listens, and the file that holds its key."""

    url: str
    key_file: str


class DaemonView(Record, frozen=True):
    """The daemon itself."""

    running: bool
    pid: int | None
    since: float | None
    version: str | None
    memory_bytes: int | None


class StatusView(Record, frozen=True):
    """Everything `stoker status --json` prints. `config_fault`: why stoker.toml, as it is now, cannot be used."""

    gateway: GatewayView
    daemon: DaemonView
    services: tuple[ServiceView, ...]
    idle: IdleView | None = None
    run: RunningView | None = None
    doors: tuple[DoorView, ...] = ()
    boxes: BoxesView | None = None
    config_fault: str | None = None
