"""Paths as people write them, made whole and looked at without a fault."""

from __future__ import annotations

from pathlib import Path

from stoker.errors import WrongUse


def whole_path(written: str, folder: Path) -> str:
    """Returns a path of the file's as a whole one; raises WrongUse where its `~name` is nobody's."""
    return str(folder / expand_home(written))


def expand_home(written: str | Path, variable: str = "") -> Path:
    """Returns a path with the home for its `~` or `~name`; raises WrongUse where the name is nobody's.

    `variable` is the one of the environment that says it.
    """
    try:
        return Path(written).expanduser()
    except RuntimeError as problem:
        said = f"`{written}`" + (f" of ${variable}" if variable else "")
        raise WrongUse(
            f"{said} begins with a user's name that this machine does not know", next_step="write the whole path"
        ) from problem


def is_there(path: Path) -> bool:
    """Tells whether there is something; no where it may not be looked at, or is too long to be a path."""
    try:
        return path.exists()
    except OSError:
        return False
