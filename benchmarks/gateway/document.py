"""Writes what was measured into a part of a document; what people wrote around it stays."""

from __future__ import annotations

from pathlib import Path


def write_part(file: Path, name: str, text: str) -> None:
    """Replaces the part of that name, or appends it; each stands between two comments."""
    begin, end = f"<!-- {name}: made by a command, do not edit -->", f"<!-- end of {name} -->"
    whole = file.read_text() if file.exists() else ""
    before, found, rest = whole.partition(begin)
    after = rest.partition(end)[2].lstrip("\n") if found else ""
    part = f"{before.rstrip()}\n\n{begin}\n\n{text.strip()}\n\n{end}\n"
    file.write_text(f"{part}\n{after}" if after else part)
