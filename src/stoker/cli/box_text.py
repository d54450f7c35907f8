"""Other boxes as tables."""

from __future__ import annotations

import time

import click

from stoker.cli.show import duration, table
from stoker.records.boxes import BoxesView, BoxView

HEADINGS = ("box", "address", "state", "since", "may", "serves")
DOOR_HEADINGS = ("door of", "state", "joined", "may")


def boxes_text(view: BoxesView) -> str:
    """Returns the links of a box, to others and from others."""
    now = time.time()
    at = (
        "it lets no other box's door in ([boxes] host is not set)"
        if view.address is None
        else f"doors reach it at {view.address}"
    )
    lines = [f"this box is `{view.name}`; {at}"]
    if view.boxes:
        lines += ["", table(HEADINGS, [_box_row(box, now) for box in view.boxes])]
        lines += [f"\n{box.name}: {box.why}" for box in view.boxes if not box.is_here]
    else:
        lines.append("No other box yet: `stoker boxes add NAME URL` joins one.")
    if view.doors:
        rows = [
            (door.name, _state(door.is_here, "follows"), f"{duration(now - door.since)} ago", _may(door.may_act))
            for door in view.doors
        ]
        lines += ["", table(DOOR_HEADINGS, rows)]
    return "\n".join(lines)


def replicas_text(view: BoxesView) -> str:
    """Returns what each box serves."""
    rows = [
        (one.box, one.service, one.state, (one.revision or "-")[:12], one.plan_id or "-")
        for box in view.boxes
        for one in box.replicas
    ]
    return table(("box", "service", "state", "revision", "plan"), rows) if rows else "No other box serves anything."


def _box_row(box: BoxView, now: float) -> tuple[str, ...]:
    serves = ", ".join(one.service for one in box.replicas if one.state == "READY") or "-"
    return (box.name, box.address, _state(box.is_here, "here"), duration(now - box.since), _may(box.may_act), serves)


def _state(is_here: bool, word: str) -> str:
    return click.style(word, fg="green") if is_here else click.style("away", fg="yellow")


def _may(may_act: bool) -> str:
    return "ask, act" if may_act else "ask"
