"""Machines to plan for: this one, one of those that Stoker ships a record of, or a file that `stoker facts --json` made."""

from __future__ import annotations

from pathlib import Path

import msgspec

from stoker.box import LocalBox
from stoker.errors import WrongUse
from stoker.facts.machine.read import read_machine
from stoker.records import Machine

SHIPPED = Path(__file__).parent / "boxes"
THIS = "this"
MOST_BYTES = 4 * 1024 * 1024


def box_names() -> list[str]:
    """Returns the names that `--on` takes."""
    return [THIS, *sorted(file.stem for file in SHIPPED.glob("*.json"))]


def read_box(name: str) -> Machine:
    """Returns a machine by name or by file; raises WrongUse with the names that exist."""
    if name == THIS:
        return read_machine(LocalBox(), "/")
    file = Path(name) if "/" in name or name.endswith(".json") else SHIPPED / f"{name}.json"
    try:
        return _checked(msgspec.json.decode(_read(file), type=Machine), file)
    except FileNotFoundError as problem:
        known = ", ".join(box_names())
        raise WrongUse(
            f"there is no machine called `{name}`",
            next_step=f"choose one of {known}, or name a file that `stoker facts --json` wrote on that machine",
        ) from problem
    except (OSError, ValueError) as problem:
        raise WrongUse(f"{file} does not describe a machine", why=str(problem)) from problem


def _read(file: Path) -> bytes:
    """A regular file, and not more of it than any machine takes: the name may be a device or a pipe."""
    if file.exists() and (not file.is_file() or file.stat().st_size > MOST_BYTES):
        raise ValueError("it is no ordinary file, or far too large")
    return file.read_bytes()


def _checked(machine: Machine, file: Path) -> Machine:
    memory = machine.memory
    if memory.total_bytes <= 0 or not 0 <= memory.available_bytes <= memory.total_bytes:
        raise WrongUse(f"{file} does not describe a machine", why="its memory is not what a machine can have")
    return machine
