"""The record of what agents and alerts did: lines of JSON, only ever added to, for the user's eyes alone."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from stoker.errors import StokerError
from stoker.records.proposals import Audited


def write_audit(file: Path, audited: Audited) -> None:
    """Adds a line; raises StokerError where that fails, since nothing is done that is not recorded."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "ab") as opened:
            opened.write(msgspec.json.encode(audited) + b"\n")
    except OSError as problem:
        raise StokerError(
            f"{file} cannot be written",
            why=problem.strerror or str(problem),
            next_step="nothing is done unrecorded; make room",
        ) from problem


def read_audit(file: Path) -> list[Audited]:
    """Returns what was recorded; a line that a power cut broke is left out."""
    if not file.exists():
        return []
    found = []
    for line in file.read_bytes().splitlines():
        try:
            found.append(msgspec.json.decode(line, type=Audited))
        except msgspec.MsgspecError:
            continue
    return found
