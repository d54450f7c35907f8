"""How a fix looks on a terminal before it is applied."""

from __future__ import annotations

import click

from stoker.cli.show import printable, wrapped
from stoker.flows.fixing import Proposal

COLOURS = {"-": "red", "+": "green"}


def proposal_text(proposal: Proposal) -> str:
    """Returns what would change, in the plan and in stoker.toml, and why."""
    cause = proposal.cause
    lines = wrapped(f"{cause.confidence}: {cause.title} [{cause.rule}]", "", "  ")
    lines += wrapped(f"why: {cause.cause}", "  ", "       ")
    lines += ["", f"the plan of {proposal.service} would change:", *_coloured(proposal.settings)]
    return "\n".join([*lines, "", f"and once it is READY, {proposal.file}:", *_coloured(proposal.lines)])


def _coloured(lines: tuple[str, ...]) -> list[str]:
    return [click.style(f"  {printable(line)}", fg=COLOURS[line[0]]) for line in lines]
