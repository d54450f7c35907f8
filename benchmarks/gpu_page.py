"""Makes results.json and a page of what `make test-gpu` noted.

python -m benchmarks.gpu_page build/gpu [--machine "one NVIDIA H100 80GB"] [--write docs/measured/gpu.md [--part gpu]]
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.gateway.document import write_part
from benchmarks.shares import say_share
from stoker.records import GIB, Way

Note = dict[str, Any]
Table = list[list[str]]


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


def render_sweep(notes: list[Note]) -> str:
    """Returns what tuning measured and chose, for one load or several, and what each length of a chain gave."""
    rows = [[note["engine"], note["way"], f"{note['tok_s']:.0f}"] for note in pick(notes, "sweep")]
    told = [*map(_say_tuned, [*pick(notes, "tune"), *pick(notes, "tiers")]), *map(_say_turns, pick(notes, "turns"))]
    return render_table(("engine", "drafts", "tok/s"), rows) + "".join(f"\n{line}\n" for line in told)


def _say_turns(note: Note) -> str:
    """Says what the choice had of the best's rate, and how far that varies from prompt to prompt."""
    ratios = [one / other for one, other in note["tok_s"] if one and other]
    if not ratios:
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
    chosen = f"*{_name_way(note['chosen'])}* with {note['starts']} starts, of {note['sweep']} that all ways would take"
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


SIDES = ("through", "direct")
PAST = {"beside": "beside it", "door": "past it, turn by turn"}
HOW = {"door": "in turns", "beside": "both at once", "alone": "in turns"}
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


def render_loads(notes: list[Note]) -> str:
    """Returns how fast weights came from a cold disk, and what share of its own rate that is."""
    rows = [[note["engine"], note["content"], note["name"], f"{note['size_bytes'] / 1e9:.1f}", f"{note['weights_s']:.1f}",
             str(note["disk_mb_s"]), share(note["share"])] for note in pick(notes, "load")]  # fmt: skip
    return render_table(("engine", "weights", "how", "GB", "s", "the disk's own MB/s", "of that"), rows)


def render_rest(notes: list[Note]) -> str:
    """Returns what kills, full cards and bad input led to."""
    lines = [_say_memory_back(note) for note in pick(notes, "memory back")]
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
    host_s = note["host_back_s"]
    host = "could not be told apart from what others used" if host_s is None else f"was back after {host_s:.2f} s"
    return (
        f"- {note['engine']}, `kill -9` under a stream: all of the {note['held_bytes'] / GIB:.1f} GiB on the card were back"
        f" after {note['card_back_s']:.2f} s, the host's memory {host}; the service took both for back after"
        f" {note['settled_s']:.2f} s, and its next start began after {note['next_start_s']:.2f} s."
    )


def _say_bad_input(note: Note) -> str:
    """Says what became of a start that could not work."""
    rule, said = (note.get("first") or {}).get("rule"), " ".join((note.get("said") or "").split())[:160]
    known = f", by rule `{rule}`" if rule else f": {said}" if said else ""
    return f"- {note['engine']}, {note['name']}: {note['outcome']}{known}"


PARTS: dict[str, Callable[[list[Note]], str]] = {
    "Starts": render_starts, "Ways to draft": render_drafts, "The same words": render_exactness,
    "Lengths of a chain": render_sweep, "Sizes": render_sizes, "The gateway": render_door, "Loading": render_loads,
    "When things go wrong": render_rest,
}  # fmt: skip


def render(notes: list[Note], machine: str) -> str:
    """Returns the page's generated part."""
    engines = sorted({f"{note['engine']} {note['version']}" for note in notes})
    parts = [f"### {title}\n\n{text}" for title, make in PARTS.items() if (text := make(notes))]
    return f"{time.strftime('%Y-%m-%d')}, {machine}; {', '.join(engines)}.\n\n" + "\n".join(parts)


def main() -> None:
    """Writes both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--machine", default=platform.processor() or platform.machine())
    parser.add_argument("--write", type=Path)
    parser.add_argument("--part", default="gpu", help="which of the page's made parts it is; one for each run")
    options = parser.parse_args()
    if not (options.folder / "results.jsonl").exists():
        raise SystemExit(f"no page: nothing was noted in {options.folder}")
    notes = read_notes(options.folder / "results.jsonl")
    (options.folder / "results.json").write_text(json.dumps(notes, indent=1) + "\n")
    page = render(notes, options.machine)
    (options.folder / "page.md").write_text(page)
    if options.write:
        write_part(options.write, options.part, page)
    print(page)


if __name__ == "__main__":
    main()
