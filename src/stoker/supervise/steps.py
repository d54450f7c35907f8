"""Runs the command of a workflow's step, for the person who waits for it, and ends it with all that it started."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from types import FrameType

from stoker.errors import NotReadyInTime, StokerError
from stoker.records import WorkflowStep
from stoker.supervise.process import Group, signal_name, stop_group

GRACE_S = 10.0
KILL_LIMIT_S = 10.0
AS_CTRL_C = (signal.SIGTERM, signal.SIGHUP)


def run_step(step: WorkflowStep, environment: dict[str, str], marker: str, *, to_stderr: bool = False) -> None:
    """Runs a step's command to its end; raises StokerError where it fails, NotReadyInTime where it outlasts its limit.

    Its output passes through, and it gets no input, in a session of its own: Ctrl-C reaches it as SIGTERM, from here.
    """
    try:
        popen = subprocess.Popen(
            step.command, env=environment, cwd=step.cwd, stdin=subprocess.DEVNULL, start_new_session=True,
            stdout=sys.stderr.fileno() if to_stderr else None,
        )  # fmt: skip
    except OSError as problem:
        raise StokerError(f"`{step.command[0]}` could not be started", why=problem.strerror or str(problem)) from problem
    try:
        code = popen.wait(step.limit_s)
    except subprocess.TimeoutExpired as problem:
        end_step(Group(marker, popen.pid))
        raise NotReadyInTime(f"it did not end within {step.limit_s:g} s (limit_s)") from problem
    except BaseException:
        end_step(Group(marker, popen.pid))
        raise
    finally:
        popen.poll()
    if code:
        raise StokerError(f"killed by {signal_name(-code)}" if code < 0 else f"exit code {code}")


def end_step(group: Group) -> None:
    """Ends all processes of a step: SIGTERM, then SIGKILL; at once where Ctrl-C comes a second time."""
    try:
        left = asyncio.run(stop_group(group, GRACE_S, KILL_LIMIT_S))
    except KeyboardInterrupt:
        left = asyncio.run(stop_group(group, 0, KILL_LIMIT_S))
    if left:
        raise StokerError(f"pid {', '.join(map(str, left))} outlived SIGKILL", why="the kernel or its driver holds it")


@contextlib.contextmanager
def ended_as_by_ctrl_c() -> Iterator[None]:
    """Lets SIGTERM and a closed terminal end what is run inside as Ctrl-C does."""
    before = {number: signal.signal(number, _interrupt) for number in AS_CTRL_C}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
