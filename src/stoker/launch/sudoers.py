"""The lines that let one user start, stop and restart named units as root, and nothing else."""

from __future__ import annotations

import re
from typing import get_args

from stoker.errors import Refused
from stoker.launch.names import check_user, unit_name
from stoker.records import UnitAction

ACTIONS: tuple[UnitAction, ...] = get_args(UnitAction)
SYSTEMCTL = re.compile(r"(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*/systemctl")
HEADER = """\
# Written by Stoker. Each line allows one action on one unit, to the last word: a `*` would match spaces too, and with them
# any unit of the machine. Other actions stay out: `status` opens a pager as root, which runs commands, and `edit` an editor.
"""


def render_sudoers(
    user: str,
    services: tuple[str, ...],
    actions: tuple[UnitAction, ...] = ACTIONS,
    systemctl: str = "/usr/bin/systemctl",
) -> str:
    """Returns a sudoers file: a line for each service and action; raises Refused for names that could mean more."""
    unknown = [action for action in actions if action not in ACTIONS]
    if unknown or not SYSTEMCTL.fullmatch(systemctl):
        raise Refused(
            f"{', '.join(unknown) or systemctl!r} cannot be allowed without a password",
            why=f"only {', '.join(ACTIONS)} of a systemctl with its whole path are safe to give away",
        )
    who = check_user(user)
    units = [f"{unit_name(service)}.service" for service in services]
    lines = [f"{who} ALL=(root) NOPASSWD: {systemctl} {action} {unit}" for unit in units for action in actions]
    return HEADER + "".join(f"{line}\n" for line in lines)
