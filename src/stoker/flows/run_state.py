"""How far a workflow came, in a file of the state folder that is replaced whole."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from stoker.errors import StokerError
from stoker.records import RunState


def read_state(file: Path) -> tuple[RunState | None, str]:
    """Returns how far the last run came, None where there was none; beside it, why what is there cannot be used."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=RunState), ""
    except FileNotFoundError:
        return None, ""
    except (OSError, msgspec.MsgspecError) as problem:
        return None, f"begins anew: {file} cannot be read ({problem})"


def write_state(file: Path, state: RunState) -> None:
    """Keeps how far a run came; after a power loss it is the old state or the new one."""
    fresh = file.with_suffix(".new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as out:
            out.write(msgspec.json.encode(state))
            out.flush()
            os.fsync(out.fileno())
        fresh.rename(file)
    except OSError as problem:
        raise StokerError(
            f"{file} cannot be written", why=problem.strerror or str(problem),
            next_step="free some space: a run that cannot say how far it came could not go on after a failure",
        ) from problem  # fmt: skip
