"""What Stoker knows of this machine."""

from __future__ import annotations

from stoker.box import LocalBox
from stoker.config import Paths
from stoker.facts.machine import read_machine
from stoker.records import Machine


def read_facts(paths: Paths) -> Machine:
    """Returns the machine's facts; the disk is the one that holds, or would hold, the state folder."""
    folder = next(folder for folder in (paths.state, *paths.state.parents) if folder.exists())
    return read_machine(LocalBox(), str(folder))
