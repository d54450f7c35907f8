"""Takes services down, or all of them and the daemon with them."""

from __future__ import annotations

import time
from collections.abc import Iterator

from stoker.config import Paths
from stoker.errors import NotReadyInTime, StokerError
from stoker.flows.control import Daemon
from stoker.flows.ownership import read_owner
from stoker.records import ServiceView, State

RESTING = frozenset({State.STOPPED, State.FAILED, State.WEDGED})
DAEMON_LIMIT_S = 120.0
POLL_S = 0.02


def stop_service(daemon: Daemon, name: str) -> Iterator[ServiceView]:
    """Yields the service at each change of state until it rests; raises StokerError where its memory is not back."""
    view = daemon.down(name)
    while True:
        yield view
        if view.state is State.STOPPED:
            return
        if view.state is State.WEDGED:
            raise StokerError(f"{name} is {view.state}: {view.why}", next_step=f"try `stoker down {name}` again")
        view = daemon.wait(name, view.state)


def stop_daemon(paths: Paths, daemon: Daemon) -> None:
    """Ends the daemon and waits until it has let go of its state folder."""
    daemon.stop()
    end = time.monotonic() + DAEMON_LIMIT_S
    while read_owner(paths) is not None:
        if time.monotonic() > end:
            raise NotReadyInTime(
                f"the daemon did not end within {DAEMON_LIMIT_S:.0f} s", next_step=f"read {paths.daemon_log}"
            )
        time.sleep(POLL_S)
