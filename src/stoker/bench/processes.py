"""Finds the processes of an engine on this machine, and how much processor time they have taken."""

from __future__ import annotations

from collections.abc import Callable


def engine_seconds(port: int) -> Callable[[], float | None]:
    """Returns what tells the processor time of whoever listens on a port, with its children; None where nobody may tell."""
    pid: int | None = None
    is_known = False

    def seconds() -> float | None:
        nonlocal pid, is_known
        if not is_known:
            pid, is_known = _listener(port), True
        return None if pid is None else _tree_seconds(pid)

    return seconds


def _listener(port: int) -> int | None:
    from stoker.facts.machine.ports import read_listeners  # psutil's import is paid only where the engine is here

    return next((one.pid for one in read_listeners() if one.port == port and one.pid is not None), None)


def _tree_seconds(pid: int) -> float | None:
    import psutil

    try:
        process = psutil.Process(pid)
        times = [one.cpu_times() for one in (process, *process.children(recursive=True))]
    except psutil.Error:
        return None
    return sum(one.user + one.system for one in times)
