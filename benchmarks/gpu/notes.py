"""What a run on GPUs noted, and how tables of it are written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

Note = dict[str, Any]
Table = list[list[str]]
# Of a gateway asked beside its engine: several notes are about one thing, each of some repeats.
HOW = {"door": "in turns", "beside": "both at once", "alone": "in turns"}


def read_notes(file: Path) -> list[Note]:
    """Returns the notes of a run; of two about one thing the later, but for turns, which are several."""
    found: dict[tuple[str, ...], Note] = {}
    for place, line in enumerate(file.read_text().splitlines()):
        note: Note = json.loads(line)
        more = str(place) if note["what"] in HOW else str(note.get("way", note.get("content", "")))
        found[note["engine"], note["what"], note["name"], more] = note
    return list(found.values())


def pick(notes: Iterable[Note], what: str) -> list[Note]:
    """Returns the notes of one kind."""
    return [note for note in notes if note["what"] == what]


def share(value: float | None) -> str:
    """Returns a share in percent; a dash where it is unknown."""
    return "-" if value is None else f"{100 * value:.0f} %"


def render_table(head: Sequence[str], rows: Table) -> str:
    """Returns a table of Markdown; nothing without rows."""
    lines = ["| " + " | ".join(row) + " |" for row in [list(head), ["---"] * len(head), *rows]]
    return "\n".join(lines) + "\n" if rows else ""
