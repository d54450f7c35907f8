"""How what was found in rules, pages and notes looks on a terminal."""

from __future__ import annotations

from collections.abc import Iterator

import click

from stoker.cli.show import printable, wrapped
from stoker.records import Found, Hit


def found_text(found: Found) -> str:
    """Returns each hit with its source and the words around it."""
    lines = [] if found.all_words else [click.style("Nothing has all of these words; these have some.", fg="yellow"), ""]
    for hit in found.hits:
        lines += _lines(hit)
    lines += [] if found.hits else ["Neither a rule nor a page nor a note speaks of that."]
    lines += [f"{found.left_off} more; another word finds fewer."] if found.left_off else []
    lines += [click.style(f"not searched: {printable(what)}", dim=True) for what in found.unread]
    return "\n".join(lines).rstrip()


def _lines(hit: Hit) -> Iterator[str]:
    place = hit.source if hit.kind == "rule" else f"{hit.source}:{hit.line}"
    standing = f", {hit.standing}" if hit.standing else ""
    yield f"{click.style(printable(place), bold=True)}   {hit.kind}{standing}"
    yield from wrapped(printable(hit.title), "  ", "  ")
    yield from wrapped(printable(hit.snippet), "    ", "    ")
    yield from (f"    others say otherwise: stoker rules {other}" for other in hit.contradicts)
    yield ""
