"""What changes something: proposed by one call, done by another."""

from __future__ import annotations

from typing import Annotated

import msgspec

from stoker.mcp.desk import Desk
from stoker.mcp.tool import Arguments, Tool

Named = Annotated[str, msgspec.Meta(description="A service that stoker.toml names, or `demo`.", max_length=63)]


class OfService(Arguments, frozen=True):
    """Which service."""

    service: Named


class Confirm(Arguments, frozen=True):
    """Which proposal."""

    token: Annotated[str, msgspec.Meta(description="The token of the proposal.", max_length=100)]


def start_service(desk: Desk, asked: OfService) -> object:
    """Proposes a start."""
    return desk.proposals.propose("start", asked.service)


def stop_service(desk: Desk, asked: OfService) -> object:
    """Proposes a stop."""
    return desk.proposals.propose("stop", asked.service)


def switch_service(desk: Desk, asked: OfService) -> object:
    """Proposes a switch."""
    return desk.proposals.propose("switch", asked.service)


def apply_fix(desk: Desk, asked: OfService) -> object:
    """Proposes the fix of a failed service."""
    return desk.proposals.propose("fix", asked.service)


def confirm_action(desk: Desk, asked: Confirm) -> object:
    """Does what was proposed."""
    proposal, outcome = desk.proposals.confirm(asked.token)
    return {
        "act": proposal.act,
        "service": proposal.service,
        "outcome": outcome,
        "next": "ask service_status",
    }


PROPOSES = "This only proposes: it returns what would happen and a token. Show that to the user before confirm_action."
TOOLS = (
    Tool("start_service", "Propose a start", f"Starts a service. {PROPOSES}", OfService, start_service, changes=True),
    Tool("stop_service", "Propose a stop", f"Stops a service. {PROPOSES}", OfService, stop_service, changes=True),
    Tool(
        "switch_service", "Propose a switch",
        f"Puts a service in the place of those that leave it no room, and goes back if it does not come up. {PROPOSES}",
        OfService, switch_service, changes=True,
    ),
    Tool(
        "apply_fix", "Propose a fix",
        "Starts a failed service as the first finding of diagnose_service says, and writes that into stoker.toml once it is "
        f"READY; else all is as before. Only what a rule names is changed. {PROPOSES}",
        OfService, apply_fix, changes=True,
    ),
    Tool(
        "confirm_action", "Do what was proposed",
        "Does what a proposal's token stands for. The token is good once, for two minutes, as long as the plan is the same.",
        Confirm, confirm_action, changes=True,
    ),
)  # fmt: skip
