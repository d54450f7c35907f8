"""What the dashboard shows, and who may look at it."""

from __future__ import annotations

from stoker.records.base import Record
from stoker.records.boxes import BoxView
from stoker.records.door import DoorView
from stoker.records.fixing import FixTried
from stoker.records.views import SwitchView
from stoker.records.watching import Alert
from stoker.records.workflow import IdleView, RunningView


class SavedSession(Record, frozen=True):
    """A browser's session, by digests: of its cookie and of the word that its page adds. `name` is the cookie's own.

    `expires` is in seconds since the epoch. `looks_on`: it changes nothing.
    """

    name: str
    cookie: str
    word: str
    expires: float
    looks_on: bool


class SessionView(Record, frozen=True):
    """A session as its page knows it; `word` is told once, when it begins."""

    logged_in: bool
    looks_on: bool = False
    expires: float | None = None
    word: str | None = None


class Deeds(Record, frozen=True):
    """What may be done with a service now: None for what may be, else why not."""

    start: str | None
    stop: str | None
    switch: str | None
    restart: str | None
    rollback: str | None


class Pace(Record, frozen=True):
    """How a service has been going for the last moments; None is unknown.

    Rates are over ten seconds, drafts over a minute, times are the medians of streams within a quarter of an hour.
    `token_s` is the time of a token after the first. `band` is what the accept rate is when it is well.
    """

    running: int | None = None
    waiting: int | None = None
    tokens_per_s: float | None = None
    prompt_tokens_per_s: float | None = None
    ttft_s: float | None = None
    token_s: float | None = None
    accept_rate: float | None = None
    accept_length: float | None = None
    band: tuple[float, float] | None = None


class VerdictView(Record, frozen=True):
    """What was found out about a service the last time: when, on which occasion, and each probe's verdict."""

    at: float
    occasion: str
    verdict: str
    is_of_this_plan: bool
    probes: tuple[tuple[str, str], ...]


class Card(Record, frozen=True):
    """A service as the dashboard shows it. Times are seconds since the epoch, or lengths in seconds; None is unknown.

    `need_bytes` is what a start has to find free, `held_bytes` what would come back, `resident_bytes` what it was seen to
    hold, `coming_bytes` what it has yet to take. `goes` are those that a switch to it would stop. `is_new`: it stands in
    `stoker.toml` and was not started yet.
    """

    name: str
    model: str
    engine: str
    state: str
    since: float
    why: str
    deeds: Deeds
    revision: str = ""
    engine_version: str | None = None
    awaits: str | None = None
    expected_s: float | None = None
    need_bytes: int | None = None
    held_bytes: int | None = None
    resident_bytes: int | None = None
    coming_bytes: int | None = None
    restarts: int = 0
    plan_id: str = ""
    warnings: tuple[str, ...] = ()
    goes: tuple[str, ...] = ()
    has_room: bool | None = None
    is_new: bool = False
    answers: bool = True
    pace: Pace = Pace()
    verdict: VerdictView | None = None


class MemoryPart(Record, frozen=True):
    """One part of the machine's memory: `kind` is service, other, cache or free; of a service `service` is the name."""

    kind: str
    bytes: int
    service: str = ""


class MachineCard(Record, frozen=True):
    """The machine at this moment: its memory in parts that make the whole, the floor, and its GPU; None is unknown."""

    total_bytes: int | None = None
    available_bytes: int | None = None
    floor_bytes: int = 0
    parts: tuple[MemoryPart, ...] = ()
    stalled_pct: float | None = None
    power_w: float | None = None
    temperature_c: int | None = None
    clock_mhz: int | None = None


class DaemonCard(Record, frozen=True):
    """The daemon, and what it does by itself."""

    version: str
    since: float
    url: str
    memory_bytes: int
    idle: IdleView | None = None
    run: RunningView | None = None
    doors: tuple[DoorView, ...] = ()


class SentEvent(Record, frozen=True):
    """One server-sent event; `data` is JSON: the pieces that changed, or with `whole` all there are."""

    data: str
    event: str = "message"  # as clients take it where none is named


class Shown(Record, frozen=True):
    """Everything that the dashboard shows at one moment."""

    daemon: DaemonCard
    machine: MachineCard
    services: tuple[Card, ...]
    alerts: tuple[Alert, ...]
    lost: tuple[str, ...]
    switch: SwitchView | None
    fix: FixTried | None = None
    boxes: tuple[BoxView, ...] = ()
