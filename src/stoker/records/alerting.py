"""What is worth an alert, and what is computed for it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from stoker.records.base import Record
from stoker.records.launch import RenderedFile

AlertSeverity = Literal["info", "warning", "critical"]


class RecordingRule(Record, frozen=True):
    """A series that Prometheus computes of others, under a name with colons."""

    name: Annotated[str, msgspec.Meta(pattern="^stoker:[a-z0-9_:]+$")]
    unit: str
    what: str
    expr: str


class AlertRule(Record, frozen=True):
    """One thing that is worth an alert: the condition, for how long it has to hold, why that number, and what to do.

    `id` is what `stoker alerts` says and a configuration names, `name` what Prometheus calls it. `title` and `fix` may name
    labels in braces (`{service}`, `{gpu}`, `{holds}`, `{box}`, `{alert}`). `rules` are ids of what is known.
    `outside`: only somebody outside the daemon can notice it.
    """

    id: Annotated[str, msgspec.Meta(pattern="^[a-z0-9]+(-[a-z0-9]+)*$")]
    name: Annotated[str, msgspec.Meta(pattern="^[A-Z][A-Za-z]+$")]
    title: str
    expr: str
    for_s: Annotated[int, msgspec.Meta(ge=0)]
    severity: AlertSeverity
    because: Annotated[str, msgspec.Meta(min_length=20)]
    fix: str
    threshold: float | None = None
    rules: tuple[str, ...] = ()
    outside: bool = False


class AlertTable(Record, frozen=True):
    """All of them, in their order."""

    record: tuple[RecordingRule, ...]
    alert: tuple[AlertRule, ...]


class PrometheusView(Record, frozen=True):
    """What `stoker install prometheus` would put in place, the commands that do it, and what to know."""

    files: tuple[RenderedFile, ...]
    commands: tuple[str, ...]
    notes: tuple[str, ...] = ()
