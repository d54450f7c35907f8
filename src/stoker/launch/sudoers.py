"""The lines that let one user start, stop and restart named units as root, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import get_args

from stoker.errors import Refused
from stoker.launch.names import check_own_unit, check_user, unit_name
from stoker.records import UnitAction

ACTIONS: tuple[UnitAction, ...] = get_args(UnitAction)
# Not the caller's PATH: a sudoers line on a program that a user can replace would hand out root.
SYSTEM_PATH = "/usr/bin:/bin"
UNIT_ACTIONS: tuple[UnitAction, ...] = ("start", "stop")
SYSTEMCTL = re.compile(r"(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*/systemctl")
HEADER = """\
# Written by Stoker. Each line allows one action on one unit, to the last word: a `*` would match spaces too, and with them
# any unit of the machine. Other actions stay out: `status` opens a pager as root, which runs commands, and `edit` an editor.
"""


def action_words(action: UnitAction, unit: str, systemctl: str = "/usr/bin/systemctl") -> tuple[str, ...]:
    """Returns the exact words that sudo allows for one action on one unit."""
    return (systemctl, action, unit)


def sudoers_line(user: str, words: Sequence[str]) -> str:
    """Returns the line that lets a user run exactly these words as root."""
    return f"{user} ALL=(root) NOPASSWD: {' '.join(words)}"


def render_sudoers(
    user: str,
    services: tuple[str, ...],
    actions: tuple[UnitAction, ...] = ACTIONS,
    systemctl: str = "/usr/bin/systemctl",
    units: tuple[str, ...] = (),
) -> str:
    """Returns a sudoers file: a line for each service and action; raises Refused for names that could mean more.

    `units` are started and stopped by Stoker itself: those of services that have one of their own.
    """
    unknown = [action for action in actions if action not in ACTIONS]
    if unknown or not SYSTEMCTL.fullmatch(systemctl):
        raise Refused(
            f"{', '.join(unknown) or systemctl!r} cannot be allowed without a password",
            why=f"only {', '.join(ACTIONS)} of a systemctl with its whole path are safe to give away",
        )
    who = check_user(user)
    own = [f"{unit_name(service)}.service" for service in services]
    wanted = [action_words(action, unit, systemctl) for unit in own for action in actions]
    wanted += [action_words(action, check_own_unit(unit), systemctl) for unit in units for action in UNIT_ACTIONS]
    return HEADER + "".join(f"{sudoers_line(who, words)}\n" for words in wanted)
