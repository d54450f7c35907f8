"""What was planned and proved on GPUs, and what kills, full cards and bad input led to."""

from __future__ import annotations

from benchmarks.gpu.notes import Note, pick
from stoker.records import GIB


def render_proofs(notes: list[Note]) -> str:
    """Returns how a plan here differs from a GB10's, and what was verified of services."""
    lines = [
        f"- {note['engine']}, planned for {note['gpu']}: without {', '.join(note['left_out'])}, which a GB10's plan has."
        for note in pick(notes, "plan")
    ]
    lines += [
        f"- {note['engine']}, a launch that `stoker lint` warns of on a GB10, and not here: {', '.join(note['on_gb10'])}."
        for note in pick(notes, "lint")
    ]
    lines += [
        f"- {note['engine']}, `stoker verify {note['name']}`: {', '.join(map(' '.join, note['verdicts'].items()))}."
        for note in pick(notes, "verify")
    ]
    lines += [
        f"- {note['engine']}, a client that leaves a stream: {note['left']}."
        for note in pick(notes, "verify")
        if "left" in note
    ]
    return "\n".join(lines) + "\n" if lines else ""


def render_rest(notes: list[Note]) -> str:
    """Returns what kills, full cards and bad input led to."""
    lines = [_say_memory_back(note) for note in pick(notes, "memory back")]
    lines += [_say_killed(note) for note in pick(notes, "killed")]
    lines += [
        f"- {note['engine']}, the server killed while no daemon was there: {note['processes']} processes of it lived on, and"
        " were ended before the next start."
        for note in pick(notes, "orphan")
    ]
    lines += [
        f"- {note['engine']}, a card held by another program, which a start waited for and named: {note['awaits']}"
        for note in pick(notes, "held")
    ]
    lines += [_say_bad_input(note) for note in pick(notes, "bad input")]
    return "\n".join(lines) + "\n" if lines else ""


def _say_memory_back(note: Note) -> str:
    """Says when what a killed engine held was back, and when the service went on."""
    return (
        f"- {note['engine']}, `kill -9` under a stream: all of the {note['held_bytes'] / GIB:.1f} GiB on the card were back"
        f" after {note['card_back_s']:.2f} s, the {note['held_host_bytes'] / GIB:.1f} GiB of the host's after"
        f" {note['host_back_s']:.2f} s; the service took both for back after {note['settled_s']:.2f} s, and its next start"
        f" began after {note['next_start_s']:.2f} s."
    )


def _say_killed(note: Note) -> str:
    """Says what became of an engine that was killed."""
    again_s, failed_s = note.get("ready_again_s"), note.get("failed_s")
    end = f"READY again after {again_s:.1f} s" if again_s is not None else f"FAILED after {failed_s:.2f} s: {note['why']}"
    return f"- {note['engine']}, `kill -9` {note['name']}: {end}."


def _say_bad_input(note: Note) -> str:
    """Says what became of a start that could not work."""
    rule, said = (note.get("first") or {}).get("rule"), " ".join((note.get("said") or "").split())[:160]
    known = f", by rule `{rule}`" if rule else f": {said}" if said else ""
    return f"- {note['engine']}, {note['name']}: {note['outcome']}{known}"
