"""How a start's timeline looks on a terminal."""

from __future__ import annotations

import time

import click

from stoker.cli.show import printable, say_bar, table, width, wrapped
from stoker.records import Finding, Loading, StageRow, Timeline, TimelineView, say_bytes, say_s

MOST_ADVICE = 3


def timeline_text(view: TimelineView) -> str:
    """Returns the stages with their bars, then the slowest and what to do about it."""
    lines = [_head(view), ""]
    if view.last.begun_at is None:
        lines[1:1] = wrapped("It begins with the log's first line: what came before is not counted.", "  ", "  ")
    lines.append(_table(view))
    lines += ["", *_slowest(view)] if view.slowest else []
    return "\n".join([*lines, *_loading(view.loading)])


def _table(view: TimelineView) -> str:
    kept = [row for row in view.rows if row.took_s is not None or row.before_s is not None or row.line]
    longest_s = max((row.took_s or 0.0 for row in kept), default=0.0)
    cells = [_cells(row, longest_s, view.slowest) for row in kept]
    if view.before is None:
        return table(("stage", "took", ""), [(name, took, bar) for name, took, _, _, bar in cells])
    return table(("stage", "took", "before", "difference", ""), cells)


def _head(view: TimelineView) -> str:
    last = view.last
    name = f"{last.engine} {last.version}" if last.version else last.engine
    begun = time.strftime(", started %Y-%m-%d %H:%M:%S", time.localtime(last.begun_at)) if last.begun_at is not None else ""
    before = f"; {_say_s(view.before.total_s)} the time before" if view.before and view.before.total_s is not None else ""
    return click.style(f"{name}{begun}: {_said(last)}{before}", bold=True)


def _said(last: Timeline) -> str:
    if not last.is_ready:
        return "never said that it is ready"
    return "ready" if last.total_s is None else f"ready after {_say_s(last.total_s)}"


def _say_s(seconds: float | None) -> str:
    return "-" if seconds is None else say_s(seconds)


def _cells(row: StageRow, longest_s: float, slowest: str | None) -> tuple[str, str, str, str, str]:
    name = click.style(row.name, fg="yellow") if row.name == slowest else row.name
    sign = "" if row.difference_s is None else "-" if row.difference_s < 0 else "+"
    difference = "-" if row.difference_s is None else f"{sign}{_say_s(abs(row.difference_s))}"
    return (name, _say_s(row.took_s), _say_s(row.before_s), difference, say_bar(row.took_s or 0.0, longest_s))


def _slowest(view: TimelineView) -> list[str]:
    row = next(row for row in view.rows if row.name == view.slowest)
    total_s = view.last.total_s
    share = f", {row.took_s / total_s:.0%} of the start" if row.took_s is not None and total_s else ""
    lines = [f"slowest: {click.style(row.name, bold=True)}, {_say_s(row.took_s)}{share}"]
    if not row.line:
        return [*lines, *wrapped("No line of the log says what was done in that time.", "  ", "  ")]
    lines.append(click.style(f"  {_cut(printable(row.line))}", dim=True))
    return [*lines, *(line for finding in view.advice[:MOST_ADVICE] for line in _advice(finding))]


def _cut(line: str) -> str:
    room = width() - 2
    return line if len(line) <= room else f"{line[: room - 1]}…"


def _advice(finding: Finding) -> list[str]:
    return [
        "",
        *wrapped(f"{finding.what}  [{finding.rule}, {finding.standing}]", "  ", "  "),
        *wrapped(finding.why, "    ", "    "),
        *wrapped(f"what to do: {finding.fix}", "    ", "    "),
    ]


def _loading(loading: Loading | None) -> list[str]:
    if loading is None:
        return []
    text = f"weights: {say_bytes(loading.bytes)} in {_say_s(loading.took_s)}, {say_bytes(int(loading.bytes_per_s))}/s"
    if loading.disk_share is not None and loading.disk_bytes_per_s is not None:
        disk = f"{say_bytes(int(loading.disk_bytes_per_s))}/s"
        text += f": {loading.disk_share:.0%} of what the disk can ({disk})"
        text += "; more than the disk gives came from the page cache" if loading.disk_share > 1 else ""
    return ["", *wrapped(text, "", "  ")]
