"""What engines did on GPUs: their starts, their ways to draft, what these say, and how fast weights load."""

from __future__ import annotations

from benchmarks.gpu.notes import Note, pick, render_table, share


def render_starts(notes: list[Note]) -> str:
    """Returns what each start took, and the longest of its parts."""
    rows = []
    for note in pick(notes, "start"):
        stages = sorted(note["stages"].items(), key=lambda one: -one[1])[:4]
        parts = ", ".join(f"{name} {took_s:.1f}" for name, took_s in stages)
        rows.append([note["engine"], note["name"], f"{note['took_s']:.1f}", parts])
    return render_table(("engine", "service", "s", "of these"), rows)


def render_drafts(notes: list[Note]) -> str:
    """Returns what each way to draft gave, beside none."""
    alone = {(note["engine"]): note["request_decode_tps"] for note in pick(notes, "plain")}
    rows = [[engine, "none", "code", f"{tok_s:.0f}", "-", "-", "-"] for engine, tok_s in alone.items()]
    for note in pick(notes, "speculation"):
        places = ", ".join(share(one) for one in note["by_position"] or ())
        rows.append([note["engine"], note["name"], note["content"], f"{note['tok_s']:.0f}", share(note["accept_rate"]),
                     f"{note['accept_length']:.2f}", places or "not told"])  # fmt: skip
    head = ("engine", "drafts", "text", "tok/s", "accept_rate", "accept_length", "by position")
    return render_table(head, rows)


def render_exactness(notes: list[Note]) -> str:
    """Returns how often words differed from those without drafts."""
    rows = [[note["engine"], note["name"], str(note["prompts"]), str(note["differing"]), str(note.get("beyond_end", "-")),
             str(note["ties"])] for note in pick(notes, "exactness")]  # fmt: skip
    head = ("engine", "drafts", "prompts", "other words", "went on after the end", "ties told apart otherwise")
    return render_table(head, rows)


def render_loads(notes: list[Note]) -> str:
    """Returns how fast weights came from a cold disk, and what share of its own rate that is."""
    rows = [[note["engine"], note["content"], note["name"], f"{note['size_bytes'] / 1e9:.1f}", f"{note['weights_s']:.1f}",
             str(note["disk_mb_s"]), share(note["share"])] for note in pick(notes, "load")]  # fmt: skip
    return render_table(("engine", "weights", "how", "GB", "s", "the disk's own MB/s", "of that"), rows)
