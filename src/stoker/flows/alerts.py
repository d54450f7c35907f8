"""What was told of and done about alerts, with a daemon or without one, and a service's past."""

from __future__ import annotations

import contextlib
import time

import msgspec

from stoker.config import SERVICE_NAME, Paths
from stoker.errors import NotReadyInTime, StokerError, WrongUse, service_hint
from stoker.flows.client import Daemon, find_daemon
from stoker.flows.logs import saved_models
from stoker.records.alerting import AlertRule
from stoker.records.watching import Acted, Alert, HistoryRow, HistoryView, Silence, WatchPoint, WatchView
from stoker.store.timelines import read_starts
from stoker.store.watch import LEVELS, MACHINE, read_acts_since, read_alerts_since, read_points

MOST_ROWS = 150
LATER_S = 366 * 86400.0
ANY = "*"


def _daemon(paths: Paths) -> Daemon:
    daemon = find_daemon(paths)
    if daemon is None:
        raise NotReadyInTime("no daemon runs, so nothing is watched", next_step="`stoker up` starts one")
    return daemon


def watch(paths: Paths, box: str | None = None) -> WatchView:
    """Returns what the daemon, or a linked box's, sees now; raises NotReadyInTime where none runs here."""
    if box is not None:
        from stoker.flows.boxes.linked import find_linked

        return find_linked(paths, box).watch()
    daemon = _daemon(paths)
    boxes = daemon.boxes().boxes if paths.links_file.exists() else ()
    return msgspec.structs.replace(daemon.watch(), boxes=boxes)


def list_alerts(paths: Paths, since: float) -> tuple[Alert, ...]:
    """Returns the alerts that are held or fire now, then those that fired since then and are over."""
    now: tuple[Alert, ...] = ()
    with contextlib.suppress(StokerError):
        if daemon := find_daemon(paths):
            now = daemon.watch().alerts
    open_now = {(one.id, one.about) for one in now}
    kept = read_alerts_since(paths.watch_database, since)
    return (*now, *(one for one in kept if one.state == "resolved" or (one.id, one.about) not in open_now))


def list_rules() -> tuple[AlertRule, ...]:
    """Returns every alert that the daemon can notice."""
    from stoker.watch.table import alerts_by_id

    return tuple(alerts_by_id().values())


def list_acts(paths: Paths, since: float) -> tuple[Acted, ...]:
    """Returns what was done about alerts since then, the last first."""
    return read_acts_since(paths.watch_database, since)


def silence(paths: Paths, alert: str, about: str, for_s: float) -> tuple[Silence, ...]:
    """Has an alert kept quiet for so long, 0 ends that; raises WrongUse for one that does not exist."""
    from stoker.watch.table import find_alert

    if alert != ANY:
        find_alert(alert)
    if for_s > LATER_S:
        raise WrongUse("a silence lasts a year at most", next_step="take it out of what you are told: [watch] least")
    return _daemon(paths).silence(Silence(alert, about, time.time() + for_s))


def read_history(paths: Paths, service: str | None, span_s: float) -> HistoryView:
    """Returns the past of a service, or of the machine (None), with its alerts; raises WrongUse where nothing is kept."""
    view = look_back(paths, service, span_s)
    if not view.rows and not view.alerts:
        otherwise = "`stoker status` lists the services; a longer --since may reach further"
        raise WrongUse(
            f"nothing is kept of `{service}` since then",
            why="a daemon that runs keeps a point a minute of each service that is READY",
            next_step=service_hint(service or MACHINE, saved_models(paths), otherwise, "stoker history"),
        )
    return view


def look_back(paths: Paths, service: str | None, span_s: float) -> HistoryView:
    """Returns the past of a service, or of the machine (None), with its alerts and starts; empty where nothing is kept."""
    name, since = service or MACHINE, max(0.0, time.time() - span_s)
    if service is not None and SERVICE_NAME.fullmatch(service) is None:
        raise WrongUse(f"`{service}` is no service's name", next_step="`stoker status` lists the services")
    longest_s = max(step_s * kept for step_s, kept in LEVELS)
    step_s, points = read_points(paths.watch_database, name, since, min(span_s, longest_s), MOST_ROWS)
    alerts = read_alerts_since(paths.watch_database, since, name)
    rows = tuple(_row(at, point) for at, point in points)
    acts = read_acts_since(paths.watch_database, since, name)
    return HistoryView(name, since, step_s, rows, alerts, acts, _starts(paths, service, since))


def _starts(paths: Paths, service: str | None, since: float) -> tuple[float, ...]:
    """Returns when the kept starts of a service began."""
    kept = read_starts(paths.database, service) if service is not None else []
    return tuple(at for one in kept if (at := one.timeline.begun_at) is not None and at >= since)


def _row(at: int, point: WatchPoint) -> HistoryRow:
    made, seconds = point.generated_tokens, point.seconds
    return HistoryRow(
        at=at, seconds=seconds, tokens_per_s=None if made is None or not seconds else made / seconds,
        accept_rate=point.accept_rate, accept_length=point.accept_length, running_most=point.running_most,
        waiting_most=point.waiting_most, requests=point.requests, failed=point.failed, ttft_most_s=point.ttft_most_s,
        ttft_mean_s=_mean(point.ttft_total_s, point.streams), token_mean_s=_mean(point.token_total_s, point.counted_streams),
        available_least_bytes=point.available_least_bytes, power_most_w=point.power_most_w,
        temperature_most_c=point.temperature_most_c, clock_least_mhz=point.clock_least_mhz,
    )  # fmt: skip


def _mean(total_s: float | None, count: int | None) -> float | None:
    return total_s / count if total_s is not None and count else None
