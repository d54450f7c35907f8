"""Decides when a service stops because nothing is asked of it, and when the default service comes back. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from stoker.records import IdleSettings, IdleView, Record, RunningView, ServiceView, State

ON_PURPOSE = "you asked for it"  # why a service is STOPPED that a person took down, and no switch
SETTLED = frozenset({State.READY, State.STOPPED, State.FAILED, State.WEDGED})


class Quiet(Record, frozen=True):
    """What is known of the services' use, in seconds since the epoch.

    `quiet_since` is when something was last asked of a service; `busy` says who is asked just now, empty where nobody is.
    `failed_at` is when the last way back failed, None where none did. `asked_at` is when something was last asked of each
    service, `idle_s` the time-outs of those that have one of their own.
    """

    services: tuple[ServiceView, ...]
    quiet_since: float
    busy: str = ""
    run: RunningView | None = None
    is_switching: bool = False
    failed_at: float | None = None
    asked_at: Mapping[str, float] = {}
    idle_s: Mapping[str, float] = {}


def plan_stops(seen: Quiet, now: float) -> dict[str, str]:
    """Returns the services to stop now because nothing was asked of them for their own `idle_s`, each with the reason."""
    if seen.run is not None or seen.is_switching:
        return {}
    return {
        view.name: f"nothing was asked of it for {limit_s:g} s (idle_s)"
        for view in seen.services
        if view.state is State.READY and (limit_s := seen.idle_s.get(view.name)) is not None
        if now >= max(view.since, seen.asked_at.get(view.name, 0.0)) + limit_s
    }


def plan_return(settings: IdleSettings, seen: Quiet) -> IdleView | None:
    """Returns when the default service comes back and why, or why it does not; None where no default is set."""
    name = settings.default_service
    if name is None:
        return None
    if stays := _why_not(name, seen):
        return IdleView(name, None, stays)
    up = _others_up(name, seen)
    since = max(seen.quiet_since, *(view.since for view in up))
    if seen.failed_at is not None and since <= seen.failed_at:
        return IdleView(name, None, f"the last way back to {name} failed, and nothing was asked since")
    names = ", ".join(view.name for view in up)
    # Who has a time-out of its own does not keep the default service away for longer than that.
    limit_s = max(min(settings.idle_s, seen.idle_s.get(view.name, settings.idle_s)) for view in up)
    return IdleView(name, since + limit_s, f"nothing is asked of {names} (idle_s = {limit_s:g})")


def _why_not(name: str, seen: Quiet) -> str:
    default = next((view for view in seen.services if view.name == name), None)
    moving = next((view for view in seen.services if view.state not in SETTLED), None)
    if default is not None and default.state is State.READY:
        return f"{name} is up"
    if seen.run is not None:
        return f"the workflow {seen.run.workflow} runs (pid {seen.run.pid})"
    if seen.is_switching:
        return "a switch is under way"
    if moving is not None:
        return f"{moving.name} is {moving.state}"
    if not _others_up(name, seen):
        return "nothing else is up"
    if default is not None and default.state is State.STOPPED and default.why == ON_PURPOSE:
        return f"you took {name} down"
    return seen.busy


def _others_up(name: str, seen: Quiet) -> list[ServiceView]:
    return [view for view in seen.services if view.state is State.READY and view.name != name]
