"""Keys and usage as tables."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from stoker.cli.show import duration, table
from stoker.records import PRIORITIES, KeyView, UsageLine, UsageView, say_s

KEY_HEADINGS = ("key", "state", "models", "rpm", "running", "priority", "made", "used", "ends")
HEADINGS = ("requests", "failed", "prompt", "completion", "cached", "first token", "whole")
COLOURS = {"valid": "green", "expired": "yellow", "revoked": "red"}
UNKNOWN = "-"


def keys_text(views: Sequence[KeyView]) -> str:
    """Returns the keys as a table."""
    if not views:
        return "No named key yet: `stoker keys add NAME` makes one."
    return table(KEY_HEADINGS, [_key_row(view, time.time()) for view in views])


def _key_row(view: KeyView, now: float) -> tuple[str, ...]:
    return (
        view.name,
        click.style(view.state, fg=COLOURS[view.state]),
        "none, metrics" if view.metrics else "all" if view.models is None else ",".join(view.models),
        _number(view.rpm),
        _number(view.running),
        next((word for word, number in PRIORITIES.items() if number == view.priority), str(view.priority)),
        f"{duration(now - view.created)} ago",
        "never" if view.last_used is None else f"{duration(now - view.last_used)} ago",
        _end(view, now),
    )


def _end(view: KeyView, now: float) -> str:
    if view.revoked is not None:
        return f"{duration(now - view.revoked)} ago"
    if view.expires is None:
        return UNKNOWN
    left = view.expires - now
    return f"in {duration(left)}" if left > 0 else f"{duration(-left)} ago"


def usage_text(view: UsageView) -> str:
    """Returns usage as a table."""
    if not view.lines:
        return "No request for a model is kept of that time."
    lines = [table((view.by, *HEADINGS), [_usage_row(line) for line in view.lines])]
    if view.unwritten:
        lines.append(f"\n{view.unwritten} requests could not be kept; the daemon's log says why.")
    return "\n".join(lines)


def _usage_row(line: UsageLine) -> tuple[str, ...]:
    counts = (line.prompt_tokens, line.completion_tokens, line.cached_tokens)
    times = (line.ttft_mean_s, line.duration_mean_s)
    return (
        line.name or UNKNOWN,
        str(line.requests),
        str(line.failed),
        *map(_number, counts),
        *(UNKNOWN if seconds is None else say_s(seconds) for seconds in times),
    )


def _number(count: int | None) -> str:
    return UNKNOWN if count is None else f"{count:,}"
