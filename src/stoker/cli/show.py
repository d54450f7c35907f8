"""How things look on a terminal: durations, sizes, tables, JSON."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from stoker.records import ServiceView, State, StatusView, say_bytes
from stoker.records.boxes import BoxView

COLOURS = {
    State.READY: "green", State.FAILED: "red", State.WEDGED: "red", State.BACKOFF: "yellow", State.STOPPED: "bright_black",
}  # fmt: skip
WIDEST_STATE = max(map(len, State))
WIDEST, PAGE = 120, 110
BAR_CELLS = 24
BAR, HALF = "█", "▌"
HEADINGS = ("service", "model", "state", "since", "address", "memory")


def say_json(value: object) -> None:
    """Prints a record as JSON."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def width() -> int:
    """Returns how wide text may be: the terminal's width, or a page's where the output is none."""
    return min(WIDEST, shutil.get_terminal_size().columns) if sys.stdout.isatty() else PAGE


def wrapped(text: str, first: str = "", more: str = "") -> list[str]:
    """Returns text in lines that fit; flags and paths are never broken, so that they can be copied."""
    return textwrap.wrap(
        text, max(40, width()), initial_indent=first, subsequent_indent=more, break_on_hyphens=False, break_long_words=False
    )


def command_name() -> str:
    """Returns what to type to call this program: its name where PATH has it, else where it lies."""
    if shutil.which("stoker"):
        return "stoker"
    place = Path(sys.executable).with_name("stoker")
    return os.path.relpath(place) if place.is_relative_to(Path.cwd()) else str(place)


def duration(seconds: float) -> str:
    """Returns a duration as people say it: '4 s', '12 min', '3 h', '5 d'."""
    for unit_s, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit_s:
            return f"{int(seconds // unit_s)} {name}"
    return f"{max(0, int(seconds))} s"


def size(count: int | None) -> str:
    """Returns an amount of memory, or '-' where it is unknown."""
    return "-" if count is None else say_bytes(count)


def state(one: State) -> str:
    """Returns a state in its colour; click drops colours where the output is no terminal."""
    return click.style(one.value, fg=COLOURS.get(one, "cyan"))


def change(view: ServiceView, is_step: bool = False) -> str:
    """Returns one line about the state that a service is in now: why, and what it waits for; of a step the latter alone."""
    waits = f"waiting for {view.awaits}" if view.awaits else ""
    text = waits if is_step and waits else "; ".join(filter(None, (view.why, waits)))
    return f"{view.name}  {_pad(state(view.state), WIDEST_STATE)}  {click.style(text, dim=True)}"


def printable(text: str) -> str:
    """Returns text without control characters: what a model or an engine says must not drive the terminal."""
    return "".join(letter for letter in text if letter in "\n\t" or unicodedata.category(letter) != "Cc")


def table(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Returns a table; cells may hold colours."""
    widths = [max(len(click.unstyle(row[column])) for row in (headings, *rows)) for column in range(len(headings))]
    styled = [tuple(click.style(heading, dim=True) for heading in headings), *rows]
    return "\n".join(
        "  ".join(_pad(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in styled
    )


def say_bar(part: float, whole: float) -> str:
    """Returns a bar as long as a part is of the whole; none where there is nothing to show."""
    if not part or not whole:
        return ""
    halves = round(part / whole * BAR_CELLS * 2)
    return BAR * (halves // 2) + HALF * (halves % 2)


def _pad(cell: str, width: int) -> str:
    return cell + " " * (width - len(click.unstyle(cell)))


def status_text(view: StatusView) -> str:
    """Returns the status as a table with what else there is to say."""
    daemon = view.daemon
    if daemon.running and daemon.since is not None:
        lines = [f"gateway  {view.gateway.url}   key in {view.gateway.key_file}", _daemon_line(view), ""]
    elif daemon.pid is not None:
        lines = [
            f"The daemon (pid {daemon.pid}) holds the state folder and does not answer; `kill -9 {daemon.pid}` ends it.",
            "",
        ]
    else:
        lines = ["The daemon is not running; `stoker up` starts it.", ""]
    if view.config_fault:
        said = f"stoker.toml cannot be used as it is now, and what it said before stands: {view.config_fault}"
        lines += [click.style(said, fg="yellow"), "  next: mend it; `stoker plan` says it with the next step", ""]
    if view.services:
        lines.append(table(HEADINGS, [_row(service) for service in view.services]))
    else:
        lines.append("No service yet: `stoker up` serves the demo model, `stoker up MODEL.gguf` one of yours.")
    for service in view.services:
        if service.state is not State.READY or service.restarts or not daemon.running:
            lines.append(f"\n{change(service)}")
        lines += rank_lines(service)
        lines += [click.style(f"\n{service.name}: {warning}", fg="yellow") for warning in service.warnings]
    return "\n".join([*lines, *_boxes(view), *_doors(view), *_run_and_idle(view)])


def rank_lines(service: ServiceView) -> list[str]:
    """Returns a line for each rank that another box runs."""
    lines = []
    for rank in service.ranks:
        told = (state(rank.state), size(rank.memory_bytes), rank.transport, "" if rank.state is State.READY else rank.why)
        lines.append(f"\n{service.name}: rank {rank.rank} on {rank.box}  {'  '.join(one for one in told if one)}")
    return lines


def _boxes(view: StatusView) -> list[str]:
    boxes = () if view.boxes is None else view.boxes.boxes
    return ["", *box_lines(boxes)] if boxes else []


def box_lines(boxes: Sequence[BoxView]) -> list[str]:
    """Returns a line for each linked box: its services, memory and alerts, or for how long it is away and why."""
    width = max(len(one.name) for one in boxes)
    return [f"box {one.name:<{width}}  {_box(one)}" for one in boxes]


def _box(box: BoxView) -> str:
    past = duration(time.time() - box.since)
    if not box.is_here:
        return f"{click.style('away', fg='yellow')} for {past}: {printable(box.why)}"
    serves = [f"{one.service} {one.state}" for one in box.replicas] or ["no service"]
    health = box.health
    if health is not None and health.total_bytes is not None:
        serves.append(f"{size(health.available_bytes)} of {size(health.total_bytes)} available")
    fires = [
        click.style(f"{one.severity}: {printable(one.title)}", fg="yellow") for one in (health.alerts if health else ())
    ]
    return "; ".join([f"here for {past}", *serves, *fires])


def _doors(view: StatusView) -> list[str]:
    lines, begin = [], "\ndemand   "
    for door in view.doors:
        starts = ["a request starts it"] if door.on_demand else []
        stops = [] if door.idle_s is None else [f"it stops when nothing was asked of it for {door.idle_s:g} s (idle_s)"]
        lines.append(f"{begin}{door.service}: {'; '.join([*starts, *stops])}")
        begin = "         "
    return lines


def _run_and_idle(view: StatusView) -> list[str]:
    lines = []
    if view.run is not None:
        since = duration(time.time() - view.run.since)
        lines.append(f"\nruns     {view.run.workflow} (pid {view.run.pid}) for {since}")
    if view.idle is not None:
        name, at = view.idle.default_service, view.idle.returns_at
        when = "" if at is None else f" comes back in {duration(at - time.time())}"
        lines.append(f"\ndefault  {name}{when}: {view.idle.why}")
    return lines


def _daemon_line(view: StatusView) -> str:
    daemon = view.daemon
    up = duration(time.time() - (daemon.since or time.time()))
    return f"daemon   pid {daemon.pid}, up {up}, {size(daemon.memory_bytes)}, version {daemon.version}"


def _row(service: ServiceView) -> tuple[str, ...]:
    since = duration(time.time() - service.since)
    return (
        service.name,
        service.model,
        state(service.state),
        since,
        service.address or "-",
        size(service.memory_bytes),
    )


def place_text(url: str, box: str | None) -> str:
    """Returns where is asked."""
    return f"on {box}, through {url}" if box else f"at {url}"
