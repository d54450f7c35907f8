"""Makes results.json and a page of what `make test-gpu` noted.

python -m benchmarks.gpu.page build/gpu [--head "2026-11-28, two NVIDIA H200"] [--write docs/measured/gpu.md [--part gpu]]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import msgspec

from benchmarks.gateway.document import write_part
from benchmarks.gpu import run as runs
from benchmarks.gpu.door import render_door
from benchmarks.gpu.ends import render_proofs, render_rest
from benchmarks.gpu.engines import render_drafts, render_exactness, render_loads, render_starts
from benchmarks.gpu.notes import Note, read_notes
from benchmarks.gpu.tuned import render_sizes, render_sweep

PARTS: dict[str, Callable[[list[Note]], str]] = {
    "Planned and verified": render_proofs, "Starts": render_starts, "Ways to draft": render_drafts,
    "The same words": render_exactness, "Lengths of a chain": render_sweep, "Sizes": render_sizes,
    "The gateway": render_door, "Loading": render_loads, "When things go wrong": render_rest,
}  # fmt: skip


def render(notes: list[Note], head: str) -> str:
    """Returns the page's generated part; `head` tells what the figures are of."""
    parts = [f"### {title}\n\n{text}" for title, make in PARTS.items() if (text := make(notes))]
    return f"{head}\n\n" + "\n".join(parts)


def main() -> None:
    """Writes both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--head", help="what the figures are of; else as the run itself noted")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--part", default="gpu", help="which of the page's made parts it is; one for each run")
    options = parser.parse_args()
    if not (options.folder / "results.jsonl").exists():
        raise SystemExit(f"no page: nothing was noted in {options.folder}")
    notes, run = read_notes(options.folder / "results.jsonl"), runs.read(options.folder)
    results = {"run": msgspec.to_builtins(run), "notes": notes}
    (options.folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    page = render(notes, options.head or (runs.say(run) if run else "Of a run that did not note what it was of."))
    (options.folder / "page.md").write_text(page)
    if options.write:
        write_part(options.write, options.part, page)
    print(page)


if __name__ == "__main__":
    main()
