"""What watching saw, what it takes for wrong, and what it was told to do about it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec.structs import astuple

from stoker.records.alerting import AlertSeverity
from stoker.records.base import Record
from stoker.records.boxes import BoxView

AlertState = Literal["held", "firing", "resolved"]
ActKind = Literal["restart", "speculation off", "rollback", "stop"]
Address = Annotated[str, msgspec.Meta(pattern=r"^https?://[^\s/]+\S*$")]


class WatchSettings(Record, frozen=True):
    """The `[watch]` table: how often, who is told, and what may be done without asking.

    `command` is a list of words; it gets the alert as JSON on its standard input. `act` says for an alert's id what to do
    when it fires; nothing that is not said is done, and with `dry_run` it is only told; after one act about a service the
    next waits for `act_hold_off_s`. `canary_every_s` None: no canary prompts are asked; `canary_quiet_s` is for how long
    nobody has to have asked anything before they are.
    """

    every_s: Annotated[float, msgspec.Meta(ge=1, le=300)] = 15.0
    webhooks: tuple[Address, ...] = ()
    ntfy: Address | None = None
    command: tuple[str, ...] = ()
    notice_limit_s: Annotated[float, msgspec.Meta(gt=0, le=300)] = 10.0
    least: AlertSeverity = "warning"
    dry_run: bool = False
    canary_every_s: Annotated[float, msgspec.Meta(ge=1)] | None = None
    canary_quiet_s: Annotated[float, msgspec.Meta(ge=0)] = 300.0
    act_hold_off_s: Annotated[float, msgspec.Meta(ge=0)] = 900.0
    act: dict[str, ActKind] = {}  # noqa: RUF012 - msgspec copies it


class Alert(Record, frozen=True):
    """Something wrong that is or was so; times are seconds since the epoch.

    `about` is a service, a GPU or a disk; empty: the machine. `held` has not been so for long enough to fire.
    """

    id: str
    about: str
    severity: AlertSeverity
    title: str
    why: str
    fix: str
    state: AlertState
    since: float
    fired: float | None = None
    resolved: float | None = None
    silenced_until: float | None = None


class Silence(Record, frozen=True):
    """Whom not to tell of: an alert's id and whom it is about, each `*` for all, until then."""

    id: str
    about: str
    until: float


class Acted(Record, frozen=True):
    """What was done about an alert, or would have been; `outcome` is what came of it."""

    at: float
    alert: str
    about: str
    act: ActKind
    dry_run: bool
    why: str
    outcome: str


class WatchPoint(msgspec.Struct, frozen=True, array_like=True):
    """What was seen of a service, or of the machine, in a stretch of time: sums, or the worst. None is unknown.

    `ttft_total_s` is a sum over its `streams`, `token_total_s` one over those that said how many tokens they had.
    Kept in this order, by the hundred thousand: fields are added at the end alone.
    """

    seconds: float = 0.0
    generated_tokens: int | None = None
    prompt_tokens: int | None = None
    draft_tokens: int | None = None
    accepted_tokens: int | None = None
    verify_steps: int | None = None
    running_most: int | None = None
    waiting_most: int | None = None
    requests: int | None = None
    failed: int | None = None
    available_least_bytes: int | None = None
    stalled_most_pct: float | None = None
    power_most_w: float | None = None
    temperature_most_c: int | None = None
    clock_least_mhz: int | None = None
    streams: int | None = None
    ttft_total_s: float | None = None
    ttft_most_s: float | None = None
    counted_streams: int | None = None
    token_total_s: float | None = None

    @property
    def accept_rate(self) -> float | None:
        """Accepted / proposed draft tokens, where any were proposed."""
        if not self.draft_tokens or self.accepted_tokens is None:
            return None
        return self.accepted_tokens / self.draft_tokens

    @property
    def accept_length(self) -> float | None:
        """Tokens emitted per verify step, the model's own one too."""
        if not self.verify_steps or self.accepted_tokens is None:
            return None
        return 1 + self.accepted_tokens / self.verify_steps

    def joined(self, other: WatchPoint) -> WatchPoint:
        """Returns both stretches as one: sums, and of what is the most or the least, that."""
        values = map(_join, WatchPoint.__struct_fields__, astuple(self), astuple(other))
        return msgspec.convert(tuple(values), WatchPoint)


def _join(name: str, one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other) if "_most" in name else min(one, other) if "_least" in name else one + other


class HistoryRow(Record, frozen=True):
    """One stretch of a service's past, or of the machine's; times are those of streams, `token_mean_s` without the first."""

    at: float
    seconds: float
    tokens_per_s: float | None
    accept_rate: float | None
    accept_length: float | None
    running_most: int | None
    waiting_most: int | None
    requests: int | None
    failed: int | None
    ttft_mean_s: float | None = None
    ttft_most_s: float | None = None
    token_mean_s: float | None = None
    available_least_bytes: int | None = None
    power_most_w: float | None = None
    temperature_most_c: int | None = None
    clock_least_mhz: int | None = None


class HistoryView(Record, frozen=True):
    """A service's past, the oldest stretch first, and the alerts about it in that time; `step_s` is a stretch's length.

    `starts` are when starts of it began.
    """

    service: str
    since: float
    step_s: int
    rows: tuple[HistoryRow, ...]
    alerts: tuple[Alert, ...]
    acts: tuple[Acted, ...]
    starts: tuple[float, ...] = ()


class CanaryView(Record, frozen=True):
    """The last round of canary prompts: when it ended, and how the engine did with nobody else asking."""

    at: float
    ttft_s: float | None
    token_s: float | None
    accept_rate: float | None


class ContentView(Record, frozen=True):
    """What drafts are worth for one content, where requests say theirs: of stretches in which nothing else ran."""

    content: str
    accept_rate: float
    accept_length: float | None
    draft_tokens: int


class WatchedService(Record, frozen=True):
    """A service as watching sees it now; the band is what its accept rate is when it is well, None until it is learnt."""

    name: str
    state: str
    running: int | None
    waiting: int | None
    tokens_per_s: float | None
    accept_rate: float | None
    accept_length: float | None
    band: tuple[float, float] | None
    lost: str = ""
    canary: CanaryView | None = None
    contents: tuple[ContentView, ...] = ()


class WatchView(Record, frozen=True):
    """What `stoker watch` shows. `lost` says what watching could not do: see, keep or tell. `boxes`: other ones."""

    at: float
    every_s: float
    services: tuple[WatchedService, ...]
    available_bytes: int | None
    total_bytes: int | None
    power_w: float | None
    temperature_c: int | None
    alerts: tuple[Alert, ...]
    silences: tuple[Silence, ...] = ()
    lost: tuple[str, ...] = ()
    boxes: tuple[BoxView, ...] = ()
