"""Brings a service up: a daemon where none runs, the wish, and the wait until it is READY or has failed."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from stoker.box import start_detached
from stoker.config import DEMO, Config, Paths
from stoker.errors import BY_EXIT_CODE, NotReadyInTime, Refused, StokerError, WrongUse
from stoker.flows.client import Daemon, find_daemon
from stoker.flows.ownership import make_state_folder, read_owner
from stoker.records import AT_REST, MIB, RESTING, ServiceView, State
from stoker.store.services import read_saved

DAEMON_LIMIT_S = 20.0
DAEMON_LOG_BYTES = 4 * MIB
POLL_S = 0.02
TELLING_LINES = 12
NEXT = "; next: "  # how a state's reason names the step that the refusal behind it named


def ensure_daemon(paths: Paths) -> Daemon:
    """Returns the running daemon, or starts one; raises StokerError with its last words where it does not come up."""
    if daemon := find_daemon(paths):
        return daemon
    make_state_folder(paths)
    _rotate(paths.daemon_log)
    said_before_bytes = paths.daemon_log.stat().st_size if paths.daemon_log.exists() else 0
    exit_code = start_detached((sys.executable, "-P", "-m", "stoker", "serve"), paths.daemon_log)
    end = time.monotonic() + DAEMON_LIMIT_S
    while time.monotonic() < end:
        if daemon := find_daemon(paths):
            return daemon
        if (code := exit_code()) is not None and read_owner(paths) is None:
            raise _did_not_start(paths.daemon_log, said_before_bytes, code)
        time.sleep(POLL_S)
    raise NotReadyInTime(f"the daemon did not answer within {DAEMON_LIMIT_S:.0f} s", next_step=f"read {paths.daemon_log}")


@contextlib.contextmanager
def daemon_for_wish(paths: Paths) -> Iterator[Daemon]:
    """Gives the daemon; one that was started for this wish alone is ended again where the wish is refused."""
    was_there = find_daemon(paths) is not None
    daemon = ensure_daemon(paths)
    try:
        yield daemon
    except StokerError:
        if not was_there:
            _end_unused(paths, daemon)
        raise


def _end_unused(paths: Paths, daemon: Daemon) -> None:
    """Ends a daemon that has nothing to attend to; one that brought back what ran before goes on."""
    from stoker.flows.down import stop_daemon  # only what was refused waits for it

    with contextlib.suppress(StokerError):  # the refusal is what has to be told
        if all(one.state in RESTING for one in daemon.status().services):
            stop_daemon(paths, daemon)


def _rotate(log: Path) -> None:
    if log.exists() and log.stat().st_size > DAEMON_LOG_BYTES:
        log.replace(log.with_name(log.name + ".1"))


def _did_not_start(log: Path, from_bytes: int, code: int) -> StokerError:
    with log.open("rb") as file:
        file.seek(from_bytes)
        said = file.read().decode(errors="replace").strip().splitlines()
    kind = BY_EXIT_CODE.get(code, StokerError)
    if said:
        last_words = "\n".join(line.removeprefix("stoker: ") for line in said[-TELLING_LINES:])
        return kind(f"the daemon did not start: {last_words}")
    return kind("the daemon did not start", why="it said nothing", next_step=f"read {log}")


def follow(daemon: Daemon, view: ServiceView) -> Iterator[ServiceView]:
    """Yields the service at each change of state, and each step of its gate, until it is READY or rests.

    The caller judges the last one.
    """
    yield view
    while view.state not in AT_REST:
        before = view
        view = daemon.wait(view.name, before.state)
        if view.state is not before.state or (view.state is State.PROVING and view.awaits != before.awaits):
            yield view


def check_ready(view: ServiceView, tail: list[str]) -> None:
    """Raises the error that fits where a service did not become READY."""
    if view.state is State.READY:
        return
    kind = BY_EXIT_CODE.get(view.exit_code, StokerError)  # 0: somebody stopped it meanwhile
    reason, _, own_step = view.why.partition(NEXT)
    if kind is Refused:  # nothing was started, so there are no words of an engine; those in its log are of a former start
        raise Refused(f"{view.name} was not started: {reason}", next_step=own_step)
    said = "\n".join(f"    {line}" for line in tail[-TELLING_LINES:])
    raise kind(
        f"{view.name} is {view.state}: {reason}" + (f"\n  its engine's last words:\n{said}" if said else ""),
        next_step="; ".join(filter(None, (own_step, _steps(view.name) if tail else ""))),
    )


def _steps(name: str) -> str:
    return f"`stoker diagnose {name}` says what that means, `stoker logs {name}` shows all it said"


def is_known_by_name_alone(paths: Paths, target: str | None, config: Config) -> bool:
    """Tells whether a word is the name of a service that was made from a file, and is kept since."""
    if target is None or target in (*config.services, DEMO) or Path(target).exists():
        return False
    return target in {saved.plan.service for saved in read_saved(paths.database)}


def check_as_it_was(name: str, options: Mapping[str, object]) -> None:
    """Raises WrongUse where options would change a service that is started as it was the last time."""
    if given := [f"--{option.replace('_', '-')}" for option, value in options.items() if value is not None]:
        raise WrongUse(
            f"{name} is started as it was the last time",
            why=f"{', '.join(given)} would change it, and no table of stoker.toml says what else it was made of",
            next_step=f"name the file again: stoker up MODEL --name {name} {' '.join(given)} ...",
        )
