"""Writes the files that a plan's engine reads beside its words, before anything is started by them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import NamedTemporaryFile

from stoker.errors import Refused
from stoker.launch.beside import TextFile, plan_beside
from stoker.records import Plan

READABLE = 0o644  # an image's user may be another one, and nothing in there is a secret


def write_beside(plan: Plan, folder: Path) -> Plan:
    """Returns the plan as it is started, with paths in the place of texts, once those files are there; raises Refused."""
    moved, files = plan_beside(plan, str(folder))
    write_files(files)
    return moved


def write_files(files: Iterable[TextFile]) -> None:
    """Writes those that are not there yet, each whole or not at all; raises Refused."""
    for file in files:
        path = Path(file.path)
        try:
            if not _holds(path, file.text):
                _write(path, file.text)
        except OSError as problem:
            raise Refused(
                f"{path.parent} cannot be written, and the engine reads a file from there",
                why=problem.strerror or str(problem),
                next_step="make that folder yours (chown), free some space, or set STOKER_STATE to another folder",
            ) from problem


def _holds(path: Path, text: str) -> bool:
    try:
        return path.read_text() == text
    except FileNotFoundError:
        return False


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile("w", dir=path.parent, prefix=".", delete=False) as fresh:
        fresh.write(text)
    Path(fresh.name).chmod(READABLE)
    Path(fresh.name).replace(path)
