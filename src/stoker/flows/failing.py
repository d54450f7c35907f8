"""Says why a service failed, without being asked: what `stoker diagnose` says of its log, in one sentence."""

from __future__ import annotations

import sys

import msgspec

from stoker.diagnose.sentence import in_one_sentence
from stoker.records import Diagnosis
from stoker.supervise.apart import read_apart

LIMIT_S = 10.0  # reading the most of a log that is kept takes less than one


async def tell_failure(service: str) -> str:
    """Returns a sentence; an empty one where nothing is known, or not in time.

    A process of its own reads log and rules: that takes a second of a core and 40 MB, which no stream here waits for.
    """
    argv = (sys.executable, "-P", "-m", "stoker", "diagnose", service, "--json")
    printed = await read_apart(argv, LIMIT_S)
    try:
        return in_one_sentence(msgspec.json.decode(printed or b"", type=Diagnosis))
    except msgspec.DecodeError:  # it was killed at its limit, or is of another version than this daemon
        return ""
