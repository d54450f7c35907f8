"""Writes the generated pages of `docs/`; `--check` only says whether they are as they should be."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from docs_pages import answers, cli, clients, decisions, figures, filters, metrics, prediction, probes, rules

DOCS = Path(__file__).parent.parent / "docs"
FOLDERS = ("cli", "rules")
LISTED = 6


def main() -> None:
    """Writes the pages, or exits with 1 where one is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    pages = (cli, rules, answers, filters, clients, decisions, prediction, probes, figures, metrics)
    wanted = {name: text for page in pages for name, text in page.pages().items()}
    there = {str(file.relative_to(DOCS)) for folder in FOLDERS for file in (DOCS / folder).glob("*.md")}
    stale = sorted(there - wanted.keys())
    for name, text in wanted.items():
        file = DOCS / name
        if file.exists() and file.read_text() == text:
            continue
        stale.append(name)
        if not check:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    if not check:
        for name in there - wanted.keys():
            (DOCS / name).unlink()
    elif stale:
        more = f" and {len(stale) - LISTED} more" if len(stale) > LISTED else ""
        sys.exit(f"docs/ is not what code and data say ({', '.join(stale[:LISTED])}{more}); run `make docs`")


if __name__ == "__main__":
    main()
