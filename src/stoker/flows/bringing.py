"""Brings up the service that a step needs, in the place of what is in its way."""

from __future__ import annotations

from collections.abc import Callable

from stoker.errors import WrongUse
from stoker.flows.client import Daemon
from stoker.flows.down import stop_service
from stoker.flows.switch import check_switched, follow_switch
from stoker.flows.up import check_ready, follow
from stoker.records import ServiceView, State, SwitchView, Wish

Say = Callable[[str], None]


def bring_up(daemon: Daemon, wish: Wish, say: Say) -> ServiceView:
    """Returns the service once it is READY; raises the error that fits where it does not come up."""
    _await_other_switch(daemon, say)
    known = find_service(daemon, wish.name)
    if known is None or known.state is not State.READY:
        check_switched(tell_switch(daemon, daemon.switch(wish), say))
    else:  # not by a switch, which may have to wait for the last one's cool-down
        for view in follow(daemon, daemon.up(wish)):
            known = view
        check_ready(known, daemon.tail(wish.name, 20))
    return next(view for view in daemon.status().services if view.name == wish.name)


def _await_other_switch(daemon: Daemon, say: Say) -> None:
    """Waits for the end of somebody else's switch, such as one back to the default service."""
    try:
        view = daemon.await_switch(0, 0)
    except WrongUse:  # there was none
        return
    if view.outcome is None:
        say(f"waits for the switch to {view.service} that is under way")
        tell_switch(daemon, view, say)


def tell_switch(daemon: Daemon, view: SwitchView, say: Say) -> SwitchView:
    """Says each step of a switch and returns how it ended."""
    shown = 0
    for now in follow_switch(daemon, view):
        for step in now.steps[shown:]:
            say(step)
        view, shown = now, len(now.steps)
    return view


def find_service(daemon: Daemon, name: str) -> ServiceView | None:
    """Returns a service as the daemon knows it, or None."""
    return next((view for view in daemon.status().services if view.name == name), None)


def stop_those_up(daemon: Daemon, names: set[str], say: Say) -> None:
    """Stops the services of these names that are up, and waits until their memory is back."""
    for view in daemon.status().services:
        if view.name in names and view.state not in (State.STOPPED, State.FAILED):
            say(f"stops {view.name}")
            for _ in stop_service(daemon, view.name):
                pass
