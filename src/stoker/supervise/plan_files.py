"""Writes the files that a plan's engine reads beside its words, before anything is started by them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from stoker.launch.beside import TextFile, lay_beside
from stoker.records import Plan

READABLE = 0o644  # an image's user may be another one, and nothing in there is a secret


def write_beside(plan: Plan, folder: Path) -> Plan:
    """Returns the plan as it is started, with paths in the place of texts, once those files are there; raises OSError."""
    moved, files = lay_beside(plan, str(folder))
    write_files(files)
    return moved


def write_files(files: Iterable[TextFile]) -> None:
    """Writes each file whole or not at all."""
    for file in files:
        _write(file)


def _write(file: TextFile) -> None:
    path = Path(file.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(file.text)
    fresh.chmod(READABLE)
    fresh.replace(path)
