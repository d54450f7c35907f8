"""What is done to one container through its engine: looked at, started, ended, removed; and how its end is told."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import signal
from collections.abc import Mapping
from typing import Any

from stoker.supervise.containers.api import ApiProblem, DockerApi

STOPPED_LIMIT_S = 10.0
REMOVE_LIMIT_S = 60.0
BY_SIGNAL = 128  # a container's exit code for a process that a signal ended: 128 and the signal's number
OUT_OF_MEMORY = "out of memory: the kernel killed it (OOMKilled)"

Document = dict[str, Any]


async def inspect(api: DockerApi, container: str) -> Document | None:
    """Returns all that is known of a container, by its id or name; None where there is none."""
    found = await api.call("GET", f"/containers/{container}/json")
    return found if isinstance(found, dict) else None


async def find_labelled(api: DockerApi, labels: Mapping[str, str]) -> list[Document]:
    """Returns the containers that carry all the labels, whether they run or not."""
    wanted = json.dumps({"label": [f"{name}={value}" for name, value in labels.items()]})
    found = await api.call("GET", "/containers/json", all=1, filters=wanted)
    return found if isinstance(found, list) else []


async def end_container(api: DockerApi, container: str, grace_s: float, kill_limit_s: float) -> None:
    """Ends a container politely, after `grace_s` by force."""
    grace = math.ceil(grace_s)
    with contextlib.suppress(ApiProblem):  # it did not end: that is said by what is left
        await api.call("POST", f"/containers/{container}/stop", limit_s=grace + kill_limit_s, t=grace)
    if is_running(await inspect(api, container)):
        await _kill(api, container, kill_limit_s)


async def _kill(api: DockerApi, container: str, limit_s: float) -> None:
    try:
        await api.call("POST", f"/containers/{container}/kill", signal="SIGKILL")
    except ApiProblem:  # it ended just now
        return
    await await_stopped(api, container, limit_s)


async def await_stopped(api: DockerApi, container: str, limit_s: float = STOPPED_LIMIT_S) -> None:
    """Returns when the engine knows that a container has ended, or after the limit."""
    try:
        async with asyncio.timeout(limit_s):
            await api.call("POST", f"/containers/{container}/wait", limit_s=limit_s + 1)
    except TimeoutError:
        return


async def remove_container(api: DockerApi, container: str) -> None:
    """Removes a container that has ended; one that still runs is left alone."""
    if is_running(await inspect(api, container)):
        return
    try:
        await api.call("DELETE", f"/containers/{container}", limit_s=REMOVE_LIMIT_S, v=1)
    except ApiProblem:
        if await inspect(api, container) is not None:  # two may remove it at once, and docker refuses the second
            raise


def is_running(found: Document | None) -> bool:
    """Tells whether a container runs."""
    return bool(found and found["State"].get("Running"))


def describe_end(found: Document | None) -> str:
    """Returns how a container ended: 'exit code 1', 'killed by SIGKILL', or that the kernel needed its memory."""
    if found is None:
        return "ended, and its container was removed by somebody else"
    state = found["State"]
    how = describe_code(int(state.get("ExitCode") or 0))
    if state.get("OOMKilled"):
        return f"{OUT_OF_MEMORY}, {how}"
    return f"{how}: {state['Error']}" if state.get("Error") else how


def describe_code(code: int) -> str:
    """Returns what an exit code means, where a container engine counts signals from 128 on."""
    try:
        return f"killed by {signal.Signals(code - BY_SIGNAL).name}"
    except ValueError:
        return f"exit code {code}"
