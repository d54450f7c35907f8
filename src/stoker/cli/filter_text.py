"""How the gateway's filters look on a terminal."""

from __future__ import annotations

import click

from stoker.cli.show import wrapped
from stoker.records import FilterView

HOW = 'A service opts in with `filters = ["NAME", "NAME=SETTING"]` in its table; replies then list them in x-stoker-filters.'


def filters_text(filters: list[FilterView]) -> str:
    """Returns the filters, each with what it does, why, and how it is said."""
    return "\n".join([line for one in filters for line in (*_filter(one), "")] + wrapped(HOW))


def _filter(one: FilterView) -> list[str]:
    says = f"{one.example}   (after the = {one.takes})" if one.takes else one.example
    lines = [click.style(one.name, bold=True), *wrapped(one.summary, "  ", "  "), *_row("why", one.why), *_row("says", says)]
    lines += _row("on", f"{', '.join(one.paths)}: {' and '.join(one.parts)}")
    return lines + (_row("rules", ", ".join(one.rules)) if one.rules else [])


def _row(name: str, text: str) -> list[str]:
    return wrapped(f"{name:<7}{text}", "  ", " " * 9)
