"""Reads what an engine printed, and goes on reading if asked."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

from stoker.config import SERVICE_NAME, Paths
from stoker.errors import WrongUse, service_hint
from stoker.records.diagnosis import LogTail
from stoker.store.services import read_saved

TAIL_BYTES = 512 * 1024
POLL_S = 0.1
# What engines say of being asked how they are, again and again, and llama.cpp of its slots at each request.
NOISE = re.compile(r"\"?GET /(health|metrics|v1/models|slots)\b|slot update_slots|srv +(log_server_r|update_slots)")


def find_log(paths: Paths, name: str | None) -> Path:
    """Returns the log of a service, or of the one that spoke last; raises WrongUse with the names that exist."""
    logs = {file.stem: file for file in sorted(paths.engine_log("x").parent.glob("*.log"))}
    if name is None and logs:
        return max(logs.values(), key=lambda file: file.stat().st_mtime)  # the engine that spoke last
    if not logs:
        raise WrongUse("there are no logs yet", why="no engine has been started here", next_step="`stoker up` starts one")
    if name is None or SERVICE_NAME.fullmatch(name) is None or name not in logs:
        hint = service_hint(name or "", saved_models(paths), f"logs here: {', '.join(logs)}", "stoker logs")
        raise WrongUse(f"there is no log of a service called `{name}`", next_step=hint)
    return logs[name]


def saved_models(paths: Paths) -> dict[str, str | None]:
    """Returns the services that ever ran here, each with the model that its clients ask for."""
    return {one.plan.service: one.plan.model for one in read_saved(paths.database)}


def choose_kept(paths: Paths) -> str:
    """Returns the only service that ever ran here; raises WrongUse with the names where there are several, or none."""
    known = saved_models(paths)
    if len(known) == 1:
        return next(iter(known))
    hint = f"services here: {', '.join(known)}" if known else "`stoker up` starts one"
    raise WrongUse("name the service" if known else "no service ran here yet", next_step=hint)


def is_noise(line: str) -> bool:
    """Tells whether a line says nothing but that somebody looked."""
    return NOISE.search(line) is not None


def fold_noise(lines: list[str], most: int) -> LogTail:
    """Returns the last lines that are no noise, and how many of those that were given are."""
    kept = [line for line in lines if not is_noise(line)]
    return LogTail(tuple(kept[-most:]), len(lines) - len(kept))


def read_tail(file: Path, count: int) -> list[str]:
    """Returns the last lines of a file."""
    with file.open("rb") as source:
        source.seek(max(0, file.stat().st_size - TAIL_BYTES))
        return source.read().decode(errors="replace").splitlines()[-count:]


def follow_lines(file: Path) -> Iterator[str]:
    """Yields lines as they are written, through rotations, until the reader stops."""
    position, partial = file.stat().st_size, ""
    while True:
        if file.exists() and file.stat().st_size < position:
            position = 0
        with file.open("rb") as source:
            source.seek(position)
            new = source.read()
        position += len(new)
        *lines, partial = (partial + new.decode(errors="replace")).split("\n")
        yield from lines
        if not new:
            time.sleep(POLL_S)
