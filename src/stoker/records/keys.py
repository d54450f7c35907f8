"""Named keys, as they are stored and as people see them; a key itself is in `NewKey` alone, once."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from stoker.records.base import Record

KeyState = Literal["valid", "expired", "revoked"]
Rpm = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Running = Annotated[int, msgspec.Meta(ge=1, le=100_000)]
Priority = Annotated[int, msgspec.Meta(ge=-100, le=100)]
LifeS = Annotated[float, msgspec.Meta(gt=0, le=100 * 365 * 86400)]
PRIORITIES = {"low": -10, "normal": 0, "high": 10}


class KeyWish(Record, frozen=True):
    """A key that is asked for. `models` None: all; `rpm` and `running` None: no limit of its own; higher priority first.

    `metrics`: it opens /metrics and nothing else.
    """

    name: str
    models: tuple[str, ...] | None = None
    rpm: Rpm | None = None
    running: Running | None = None
    priority: Priority = 0
    expires_s: LifeS | None = None
    metrics: bool = False


class NamedKey(Record, frozen=True):
    """A key as it is stored: by its digest. Times are seconds since the epoch."""

    name: str
    digest: str
    created: float
    models: tuple[str, ...] | None = None
    rpm: int | None = None
    running: int | None = None
    priority: int = 0
    expires: float | None = None
    revoked: float | None = None
    metrics: bool = False


class KeyView(Record, frozen=True):
    """A key as people see it; `last_used` None: it was never used, or nothing is known of that any more."""

    name: str
    state: KeyState
    created: float
    models: tuple[str, ...] | None
    rpm: int | None
    running: int | None
    priority: int
    expires: float | None
    revoked: float | None
    last_used: float | None
    metrics: bool = False


class RevokedKey(Record, frozen=True):
    """A key that was ended, and how many requests were cut that ran under it."""

    view: KeyView
    cut: int


class NewKey(Record, frozen=True):
    """A key that was just made, which is shown this once, and what may be wrong with it."""

    key: str
    view: KeyView
    warnings: tuple[str, ...] = ()
