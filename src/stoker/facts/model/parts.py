"""Finds all files of a GGUF that was split into NAME-00001-of-00003.gguf and so on; llama.cpp is given the first."""

from __future__ import annotations

import re
from pathlib import Path

from stoker.errors import Refused

PART = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.DOTALL)
LISTED = 6


def find_parts(file: Path) -> list[Path]:
    """Returns the files of a model, the first first; raises Refused where one of a split model is missing."""
    found = PART.fullmatch(file.name)
    if found is None:
        return [file]
    count = int(found["count"])
    names = [f"{found['stem']}-{number:05}-of-{count:05}.gguf" for number in range(1, count + 1)]
    missing = [name for name in names if not (file.parent / name).exists()]
    if missing or not names:
        listed = ", ".join(missing[:LISTED]) + (" ..." if len(missing) > LISTED else "")
        why = f"{len(missing)} of its {count} parts are missing: {listed}"
        raise Refused(f"{file} is not whole", why=why, next_step="fetch them into the same folder")
    return [file.parent / name for name in names]


def are_one_model(files: list[Path]) -> bool:
    """Tells whether all files are parts of the same model."""
    kinds = {(found["stem"], found["count"]) if (found := PART.fullmatch(file.name)) else None for file in files}
    return len(kinds) == 1 and None not in kinds
