"""A service as people and programs see it."""

from __future__ import annotations

from stoker.records.base import Record
from stoker.records.service import State


class ServiceView(Record, frozen=True):
    """A service as people and programs see it. Times are seconds since the epoch; None is unknown."""

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
    engine_version: str | None = None
    awaits: str | None = None
    warnings: tuple[str, ...] = ()


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
    """Everything `stoker status --json` prints."""

    gateway: GatewayView
    daemon: DaemonView
    services: tuple[ServiceView, ...]
