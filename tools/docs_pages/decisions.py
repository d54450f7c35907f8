"""`docs/decisions/index.md`: what was decided, by number, from the pages themselves."""

from __future__ import annotations

import re
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"
HEAD = """# Decisions

<!-- Written by tools/make_docs.py from the pages in this folder. -->

Choices worth arguing about, 40 lines at most each; what a later one changes of an earlier stands in its head.

"""
TITLE = re.compile(r"# (\d{4}): (.+)")
MOST_LINES = 40


def pages() -> dict[str, str]:
    """Returns the page by its path in `docs/`; ends where two decisions have one number, or one is too long."""
    rows: dict[str, str] = {}
    for file in sorted(FOLDER.glob("0*.md")):
        text = file.read_text()
        title, lines = TITLE.match(text), text.count("\n")
        if title is None or title[1] != file.name[:4] or title[1] in rows:
            begins = text.partition("\n")[0]
            sys.exit(f"{file} begins with {begins!r}; next: `# NNNN: TITLE`, with its name's number, which no other has")
        if lines > MOST_LINES:
            sys.exit(f"{file} has {lines} lines; next: make it {MOST_LINES} at most")
        rows[title[1]] = f"- {title[1]} [{title[2]}]({file.name})\n"
    return {"decisions/index.md": HEAD + "".join(rows.values())}
