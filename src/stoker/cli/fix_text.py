"""How a fix looks on a terminal before it is applied."""

from __future__ import annotations

import click

from stoker.cli.show import printable, wrapped
from stoker.flows.fixing import Fix

COLOURS = {"-": "red", "+": "green"}


def fix_text(fix: Fix) -> str:
    """Returns what would change, in the plan and in stoker.toml, and why."""
    cause = fix.cause
    lines = wrapped(f"{cause.confidence}: {cause.title} [{cause.rule}]", "", "  ")
    lines += wrapped(f"why: {cause.cause}", "  ", "       ")
    lines += ["", f"the plan of {fix.service} would change:", *_coloured(fix.settings)]
    return "\n".join([*lines, "", f"and once it is READY, {fix.file}:", *_coloured(fix.lines)])


def _coloured(lines: tuple[str, ...]) -> list[str]:
    return [click.style(f"  {printable(line)}", fg=COLOURS[line[0]]) for line in lines]
