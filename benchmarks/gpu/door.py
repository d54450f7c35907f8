"""What the gateway left of an engine's rate on GPUs."""

from __future__ import annotations

import math
import statistics

from benchmarks.gpu.notes import HOW, Note, pick, render_table
from benchmarks.shares import say_share

SIDES = ("through", "direct")
PAST = {"beside": "beside it", "door": "past it, turn by turn"}
MIDDLES = {
    "TTFT ms": ("ttft_s", 1e3), "mean gap of a stream's writes ms": ("itl_chunk_s", 1e3),
    "gap of chunks, p99 ms": ("chunk_gap_p99_s", 1e3), "a token, ms": ("itl_token_s", 1e3),
    "CPU us a token: the engine's server": ("server_us_token", 1.0), "the gateway": ("gateway_us_token", 1.0),
}  # fmt: skip


def render_door(notes: list[Note]) -> str:
    """Returns what the gateway leaves of an engine's rate: the middle of each side's repeats, and their span."""
    rows, told = [], [*map(_say_kept, pick(notes, "kept"))]
    every = [note for what in HOW for note in pick(notes, what)]
    for engine, how in sorted({(note["engine"], note["what"]) for note in every}):
        turns = [note for note in every if (note["engine"], note["what"]) == (engine, how)]
        for side in SIDES:
            own = [note for note in turns if note["side"] == side]
            rates = _values(own, "total_e2e_tps")
            rows.append(
                [engine, str(own[0]["streams"]), f"{side}, {HOW[how]}", str(len(rates)), f"{statistics.median(rates):,.0f}",
                 f"{min(rates):,.0f} to {max(rates):,.0f}", _last_first_ms(own),
                 *(_middle(own, *one) for one in MIDDLES.values())]
            )  # fmt: skip
        told += _say_shares(turns, engine, how)
    first = ("engine", "streams", "asked", "repeats", "tok/s, first request to last token", "from, to")
    head = (*first, "a repeat's last TTFT ms", *MIDDLES)
    return render_table(head, rows) + "".join(f"\n{text}\n" for text in told)


def _say_kept(note: Note) -> str:
    """Says what streams through the gateway had of the rate of those beside them."""
    between = f" ({100 * note['between'][0]:.1f} to {100 * note['between'][1]:.1f} %)" if note["between"] else ""
    return (
        f"{note['engine']}: a stream through the gateway had {100 * note['ratio']:.1f} %{between} of the decode rate of one"
        " beside it."
    )


def _say_shares(turns: list[Note], engine: str, how: str) -> list[str]:
    """Says what all streams through the gateway had of the rate of all past it, and what that cost the engine's server."""
    told = []
    if how in PAST:
        share = _share_past(turns, "total_e2e_tps")
        told.append(f"{engine}: all streams through it together had {share} of the rate of those {PAST[how]}.")
    if all("server_us_token" in note["figures"] for note in turns):
        share = _share_past(turns, "server_us_token")
        told.append(
            f"{engine}: a token through it took {share} of the processor time of the engine's server that one past it did."
        )
    return told


def _share_past(turns: list[Note], name: str) -> str:
    """Returns what a figure is through the gateway as a share of it past it, repeat by repeat."""
    through, direct = (_values([note for note in turns if note["side"] == side], name) for side in SIDES)
    pairs = zip(through, direct, strict=False)  # of a run that was cut off one side may have more
    return say_share([math.log(one / other) for one, other in pairs])


def _last_first_ms(notes: list[Note]) -> str:
    """Returns when the last of a repeat's streams had its first token; the middle of the repeats."""
    last = [
        max(note["figures"]["ttft_s"][place : place + note["streams"]])
        for note in notes
        for place in range(0, len(note["figures"]["ttft_s"]), note["streams"])
    ]
    return f"{1e3 * statistics.median(last):,.0f}"


def _middle(notes: list[Note], name: str, scale: float = 1.0) -> str:
    """Returns the middle of a figure; a dash where it was not measured."""
    values = _values(notes, name)
    return f"{scale * statistics.median(values):,.1f}" if values else "-"


def _values(notes: list[Note], name: str) -> list[float]:
    return [value for note in notes for value in note["figures"].get(name, ())]
