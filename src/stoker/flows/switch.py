"""Follows a switch until it has ended, and judges how."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.errors import BY_EXIT_CODE, StokerError
from stoker.flows.client import Daemon
from stoker.records import SwitchView


def follow_switch(daemon: Daemon, view: SwitchView) -> Iterator[SwitchView]:
    """Yields the switch at each new step until it has ended."""
    seen = 0
    while True:
        if len(view.steps) > seen or view.outcome is not None:
            yield view
        if view.outcome is not None:
            return
        seen = len(view.steps)
        view = daemon.await_switch(seen, view.since)


def check_switched(view: SwitchView) -> None:
    """Raises the error that fits where the service did not take its place."""
    if view.outcome == "ready":
        return
    kind = BY_EXIT_CODE.get(view.exit_code, StokerError)
    raise kind(f"{view.service} did not take its place", why=view.why, next_step=f"`stoker logs {view.service}` shows why")
