"""Who asked which model for what, and how it went; never what was asked or answered."""

from __future__ import annotations

from typing import Literal

from stoker.records.base import Record

UsageBy = Literal["key", "model", "day"]


class UsageRecord(Record, frozen=True):
    """One request that ended. `at` is when it came, in seconds since the epoch; `status` None: no reply was begun."""

    at: float
    key: str
    path: str
    request_id: str
    duration_s: float
    status: int | None = None
    service: str | None = None
    model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    ttft_s: float | None = None


class UsageLine(Record, frozen=True):
    """The requests of one key, model or day. Tokens are sums over the `counted` requests of which they are known."""

    name: str
    requests: int
    failed: int
    counted: int
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    ttft_mean_s: float | None
    duration_mean_s: float | None


class UsageView(Record, frozen=True):
    """Usage since a time (None: all that is kept); `unwritten` are requests of which nothing could be kept."""

    by: UsageBy
    since: float | None
    lines: tuple[UsageLine, ...]
    unwritten: int = 0
