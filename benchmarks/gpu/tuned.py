"""What `stoker tune` chose on GPUs, beside what all ways gave."""

from __future__ import annotations

import math
import statistics

from benchmarks.gpu.notes import Note, pick, render_table, share
from stoker.records import Way


def render_sweep(notes: list[Note]) -> str:
    """Returns what tuning measured and chose, for one load or several, and what each length of a chain gave."""
    rows = [
        [note["engine"], note["way"], str(note["rounds"]), f"{note['tok_s']:.0f}", share(note.get("accept_rate")),
         f"{note['accept_length']:.2f}" if "accept_length" in note else "-"]
        for note in pick(notes, "sweep")
    ]  # fmt: skip
    told = [*map(_say_tuned, [*pick(notes, "tune"), *pick(notes, "tiers")]), *map(_say_turns, pick(notes, "turns"))]
    head = ("engine", "drafts", "prompts", "tok/s", "accept_rate", "accept_length")
    return render_table(head, rows) + "".join(f"\n{line}\n" for line in told)


def _say_turns(note: Note) -> str:
    """Says what the choice had of the best's rate, and how far that varies from prompt to prompt."""
    ratios = [one / other for one, other in note["tok_s"] if one and other]
    if not ratios or note["chosen"] == note["best"]:
        return f"{note['engine']}: the choice, *{note['chosen']}*, was the sweep's best."
    logs = [math.log(one) for one in ratios]
    varies = f", in {len(logs)} rounds; from one to the next it varies by {statistics.stdev(logs):.0%}" if logs[1:] else ""
    return (
        f"{note['engine']}: the sweep's best was *{note['best']}*, and side by side the choice, *{note['chosen']}*, had"
        f" {share(statistics.geometric_mean(ratios))} of its rate{varies}."
    )


def _say_tuned(note: Note) -> str:
    """Says which ways tuning started, how fast each was, and which it chose."""
    measured = {_name_way(way): tok_s for way, _, tok_s, _ in note["ways"] if tok_s is not None}
    rates = ", ".join(f"{name} {tok_s:.0f} tok/s" for name, tok_s in measured.items())
    all_ways = f"all ways would take {note['sweep']} and one more"
    chosen = f"*{_name_way(note['chosen'])}* with {note['starts']} starts, where {all_ways}"
    loads = f" for {' and '.join(map(str, note['loads']))} requests" if "loads" in note else ""
    return f"{note['engine']}: `stoker tune`{loads} chose {chosen}. It measured {rates}."


def render_sizes(notes: list[Note]) -> str:
    """Returns which sizes tuning measured and chose."""
    lines = []
    for note in pick(notes, "size"):
        rates = ", ".join(f"{tok_s:.0f} tok/s with {size}" for size, _, tok_s, _ in note["ways"] if tok_s is not None)
        lines.append(
            f"{note['engine']}: `stoker tune --knob {note['name']}` chose {note['chosen'][note['name']]}, starts: "
            f"{note['starts']} of {note['sweep']}. It measured {rates}.\n"
        )
    return "\n".join(lines)


def _name_way(way: Note) -> str:
    return Way(**{name: value for name, value in way.items() if name in Way.__struct_fields__}).name
