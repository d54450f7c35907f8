"""What `stoker diagnose` says of a service, read beside the daemon: of a failure in one sentence, unasked, or all of it."""

from __future__ import annotations

import sys

import msgspec

from stoker.config import Paths
from stoker.diagnose.sentence import in_one_sentence
from stoker.errors import NotReadyInTime
from stoker.flows.logs import find_log
from stoker.records import Diagnosis
from stoker.supervise.apart import read_apart

LIMIT_S = 10.0  # reading the most of a log that is kept takes less than one
ASKED_LIMIT_S = 60.0  # where somebody waits for all of it


async def tell_failure(service: str) -> str:
    """Returns a sentence; an empty one where nothing is known, or not in time."""
    told = await _diagnose_apart(service, LIMIT_S)
    return in_one_sentence(told) if told is not None else ""


async def diagnose_beside(paths: Paths, service: str) -> Diagnosis:
    """Returns what the log of a service says; raises WrongUse where it has none, and NotReadyInTime."""
    find_log(paths, service)
    told = await _diagnose_apart(service, ASKED_LIMIT_S)
    if told is None:
        raise NotReadyInTime(
            f"{service} was not diagnosed within {ASKED_LIMIT_S:.0f} s",
            next_step=f"`stoker diagnose {service}` has no limit",
        )
    return told


async def _diagnose_apart(service: str, limit_s: float) -> Diagnosis | None:
    """A process of its own reads log and rules: that takes a second of a core and 40 MB, which no stream here waits for."""
    printed = await read_apart((sys.executable, "-P", "-m", "stoker", "diagnose", service, "--json"), limit_s)
    try:
        return msgspec.json.decode(printed or b"", type=Diagnosis)
    except msgspec.DecodeError:  # it was killed at its limit, or is of another version than this daemon
        return None
