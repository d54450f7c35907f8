"""How watching looks on a terminal: services, alerts, and the past."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from stoker.cli.show import box_lines, duration, size, table, wrapped
from stoker.records.alerting import AlertRule
from stoker.records.watching import Acted, Alert, CanaryView, ContentView, HistoryView, WatchedService, WatchView

COLOURS = {"critical": "red", "warning": "yellow", "info": "cyan"}
TICKS = "▁▂▃▄▅▆▇█"
NOTHING = "Nothing is wrong, as far as it is watched."
SERVICES = ("service", "state", "running", "waiting", "tok/s", "accept rate", "usual", "accept length")
PAST = ("from", "tok/s", "", "accept rate", "accept length", "running", "waiting", "requests", "failed")
DAY_S = 86400


def watch_text(view: WatchView) -> str:
    """Returns what is seen now."""
    if view.total_bytes is None and not (view.lost or view.alerts):  # alerts of a former daemon are told at once
        return f"Nothing was looked at yet; the first look comes within {view.every_s:g} s."
    machine = f"memory   {size(view.available_bytes)} of {size(view.total_bytes)} available"
    heat = "" if view.temperature_c is None else f"   {view.temperature_c} C"
    power = "" if view.power_w is None else f"   GPU {view.power_w:.0f} W"
    lines = [f"{machine}{power}{heat}   looked at {duration(time.time() - view.at)} ago, every {view.every_s:g} s", ""]
    if view.services:
        lines += [table(SERVICES, [_row(one) for one in view.services]), ""]
    lines += [_canary_line(one.name, one.canary) for one in view.services if one.canary is not None]
    lines += [f"drafts of {one.name} by content: {_contents(one.contents)}" for one in view.services if one.contents]
    lines += [click.style(f"not seen: {one.name}: {one.lost}", fg="yellow") for one in view.services if one.lost]
    lines += [click.style(f"lost: {one}", fg="yellow") for one in view.lost]
    lines += [*box_lines(view.boxes), ""] if view.boxes else []
    return "\n".join([*lines, alerts_text(view.alerts)])


def _row(one: WatchedService) -> tuple[str, ...]:
    band = "-" if one.band is None else f"{one.band[0]:.2f} to {one.band[1]:.2f}"
    return (
        one.name, one.state, _number(one.running, 0), _number(one.waiting, 0), _number(one.tokens_per_s, 1),
        _number(one.accept_rate, 2), band, _number(one.accept_length, 2),
    )  # fmt: skip


def _canary_line(name: str, canary: CanaryView) -> str:
    said = [
        *([] if canary.ttft_s is None else [f"TTFT {canary.ttft_s * 1000:.0f} ms"]),
        *([] if canary.token_s is None else [f"{canary.token_s * 1000:.1f} ms a token"]),
        *([] if canary.accept_rate is None else [f"accept rate {canary.accept_rate:.2f}"]),
    ]
    return f"canary prompts of {name}, {duration(time.time() - canary.at)} ago: {', '.join(said)}"


def _contents(views: Sequence[ContentView]) -> str:
    said = (f"{one.content} {one.accept_rate:.2f} (accept length {_number(one.accept_length, 2)})" for one in views)
    return ", ".join(said)


def _number(value: float | None, places: int) -> str:
    return "-" if value is None else f"{value:.{places}f}"


def alerts_text(alerts: Sequence[Alert]) -> str:
    """Returns the alerts, each with why and what to do."""
    return "\n".join(line for alert in alerts for line in _alert_lines(alert)) if alerts else NOTHING


def _alert_lines(alert: Alert) -> list[str]:
    now = time.time()
    since = duration((alert.resolved or now) - alert.since)
    said = {"held": f"held, for {since}", "firing": f"for {since}", "resolved": f"over, was so for {since}"}
    quiet = "" if alert.silenced_until is None else f"; silenced for {duration(alert.silenced_until - now)}"
    dim = alert.state != "firing" or alert.silenced_until is not None
    head = click.style(alert.severity, fg=None if dim else COLOURS[alert.severity], dim=dim)
    lines = [
        f"{head}  {alert.title} ({said[alert.state]}{quiet})  {click.style(alert.id, dim=True)}",
        *wrapped(alert.why, "    ", "    "),
    ]
    return lines if alert.state == "resolved" else [*lines, *wrapped(f"Next: {alert.fix}", "    ", "    ")]


def acts_text(acts: Sequence[Acted]) -> str:
    """Returns what was done about alerts."""
    said = (f"{_when(one.at)}  {one.about}  {one.act} for {one.alert}: {one.outcome}" for one in acts)
    return "\n".join(said)


def history_text(view: HistoryView) -> str:
    """Returns the past as a table, with the alerts of that time below it."""
    most = max((row.tokens_per_s or 0.0 for row in view.rows), default=0.0)
    rows = [
        (
            _when(row.at), _number(row.tokens_per_s, 1), _tick(row.tokens_per_s, most), _number(row.accept_rate, 2),
            _number(row.accept_length, 2), _number(row.running_most, 0), _number(row.waiting_most, 0),
            _number(row.requests, 0), _number(row.failed, 0),
        )
        for row in view.rows
    ]  # fmt: skip
    parts = [table(PAST, rows)] if rows else []
    parts += [alerts_text(view.alerts)] if view.alerts else []
    return "\n\n".join([*parts, *([acts_text(view.acts)] if view.acts else [])])


def _tick(value: float | None, most: float) -> str:
    return TICKS[min(len(TICKS) - 1, int(value / most * len(TICKS)))] if value and most else ""


def _when(at: float) -> str:
    form = "%H:%M" if abs(time.time() - at) < DAY_S / 2 else "%a %d %b %H:%M"
    return time.strftime(form, time.localtime(at))


def rules_text(rules: Sequence[AlertRule]) -> str:
    """Returns what is watched: each alert with its number and why that is the number."""
    lines = []
    for rule in rules:
        head = f"{rule.id}  {click.style(rule.severity, fg=COLOURS[rule.severity])}  {rule.title}"
        held = f"for {rule.for_s} s" if rule.for_s else "at once"
        number = "" if rule.threshold is None else f", number {rule.threshold:g}"
        lines += [head, *wrapped(f"{held}{number}: {rule.because}", "    ", "    ")]
    return "\n".join(lines)
