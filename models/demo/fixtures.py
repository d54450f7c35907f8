"""Writes the held-out prompts that the tests use, so that the tests need neither corpus nor generator."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import layout
from corpus import SOURCES, Source, fetch_package, is_held_out, read_documents
from held_out import SORTS, write

# One licence for all excerpts in the tests: the Python Software Foundation's.
EXCERPTED = {"code": "libpython3.11-stdlib", "prose": "python3.11-doc"}
EXCERPT_CHARS = 400
EXCERPTS = 12
PARTS = (0.3, 0.5, 0.7)
TOOL_PROMPTS = 60
SEED = 4


def excerpts(source: Source, packages: Path) -> list[str]:
    """Pieces from the first long held-out documents of a package, some of each."""
    found = []
    for name, text in read_documents(source, fetch_package(source.package, packages)):
        if is_held_out(name) and len(text) > 4 * EXCERPT_CHARS:
            for part in PARTS:
                start = text.find("\n", int(len(text) * part)) + 1
                found.append(text[start : start + EXCERPT_CHARS].rsplit("\n", 1)[0] + "\n")
    return found[:EXCERPTS]


def main() -> None:
    """Writes both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=layout.FIXTURES)
    args = parser.parse_args()
    packages = layout.CORPUS / "packages"
    sources = {source.package: source for source in SOURCES}
    texts = {kind: excerpts(sources[package], packages) for kind, package in EXCERPTED.items()}
    (args.out / "held_out_texts.json").write_text(json.dumps(texts, indent=1, ensure_ascii=False) + "\n")
    for sort in SORTS:
        write(args.out / f"{sort}_tools.jsonl", TOOL_PROMPTS, sort == "held_out", SEED)


if __name__ == "__main__":
    main()
