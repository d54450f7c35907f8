"""Which workflow runs: a lock that its process holds, so that it ends with it, however that ends.

The daemon looks at it before it brings the default service back, and a second run is refused by it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import msgspec

from stoker.box import clock_s
from stoker.config import Paths
from stoker.errors import Refused
from stoker.flows.ownership import make_state_folder, read_locked, take_lock
from stoker.records import RunningView


@contextlib.contextmanager
def hold_run(paths: Paths, workflow: str) -> Iterator[None]:
    """Says that this process runs a workflow; raises Refused while another one does."""
    make_state_folder(paths)
    descriptor = os.open(paths.run_lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if not take_lock(descriptor):
            raise _held(paths)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, msgspec.json.encode(RunningView(workflow, os.getpid(), clock_s())))
        yield
    finally:
        os.close(descriptor)


def _held(paths: Paths) -> Refused:
    other = read_run(paths)
    who = f"`{other.workflow}` is run by pid {other.pid}" if other else "another workflow is being run"
    return Refused(
        who, why="two at once would take each other's services away", next_step="wait for its end, or end it with Ctrl-C"
    )


def read_run(paths: Paths) -> RunningView | None:
    """Returns the workflow that runs now, or None."""
    return read_locked(paths.run_lock, RunningView)
