"""Containers started, found and ended through the API of a real podman."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from container_home import GRACE_S, INSTANCE, KILL_LIMIT_S, OBEDIENT, SLEEP, ContainerHome, container_home
from home import wait_for
from real_tools import OwnPodman
from stoker.launch.process import MARKER_VARIABLE
from stoker.supervise.containers.calls import find_labelled
from stoker.supervise.runtimes.container import end_orphan_containers


@pytest.fixture
def home(podman: OwnPodman, tmp_path: Path) -> Iterator[ContainerHome]:
    with container_home(podman, tmp_path) as home:
        yield home


def test_an_end_is_told_and_all_output_is_kept(home: ContainerHome) -> None:
    async def run() -> None:
        assert await home.ended("echo out; echo err >&2; exit 3") == ("exit code 3", b"out\nerr\n")
        assert await home.ended("exit 143") == ("killed by SIGTERM", b"")
        how, text = await home.ended(r"printf 'a\0b\377c\n'; printf 'no newline'")
        assert (how, text) == ("exit code 0", b"a\0b\xffc\nno newline")
        long = "s=0123456789; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13; do s=$s$s; done; echo $s; echo end"
        assert (await home.ended(long))[1] == b"0123456789" * 2**13 + b"\nend\n"

    asyncio.run(run())


def test_the_container_is_exactly_what_was_planned(home: ContainerHome) -> None:
    async def run() -> None:
        running = await home.start(SLEEP)
        assert running.is_alive()
        assert running.pid == home.saved[-1].pid
        assert (running.memory_bytes() or 0) > 100_000
        created, started = home.saved
        assert (created.container, created.pid) == (running.container, None)
        assert (started.container, started.start_ticks) == (running.container, running.start_ticks)
        marked, environment = f"{MARKER_VARIABLE}={started.marker}", Path(f"/proc/{running.pid}/environ")
        # Until the process becomes the program, which may be after podman calls it started, it has runc's environment.
        wait_for("the program's environment", lambda: marked in environment.read_text().split("\0"))
        assert await home.runtime().stop(running, 0, KILL_LIMIT_S) == ""

    asyncio.run(run())


def test_what_ignores_a_polite_end_is_killed_and_removed(home: ContainerHome) -> None:
    async def run() -> None:
        running = await home.start(f"trap '' TERM; {SLEEP}")
        waiting = asyncio.ensure_future(running.wait())
        assert await home.runtime().stop(running, 1, KILL_LIMIT_S) == ""
        assert await waiting == "killed by SIGKILL"
        assert home.names() == []

    asyncio.run(run())


def test_a_polite_end_is_enough_where_it_is_obeyed(home: ContainerHome) -> None:
    async def run() -> None:
        for is_waited_for in (True, False):
            running = await home.start(OBEDIENT)
            waiting = asyncio.ensure_future(running.wait()) if is_waited_for else None
            began = time.monotonic()
            assert await home.runtime().stop(running, 60, KILL_LIMIT_S) == ""
            assert time.monotonic() - began < 60
            assert home.names() == []
            assert waiting is None or await waiting == "exit code 0"
        assert home.log().read_bytes() == b"last words\n" * 2

    asyncio.run(run())


def test_a_container_killed_or_removed_from_outside_is_told(home: ContainerHome) -> None:
    async def run() -> None:
        for words, how in (
            (("kill",), "killed by SIGKILL"),
            (("rm", "--force", "--time", "0"), "ended, and its container was removed by somebody else"),
        ):
            running = await home.start(SLEEP)
            waiting = asyncio.ensure_future(running.wait())
            await asyncio.to_thread(home.podman, *words, "stoker-small")
            assert await waiting == how
            assert await home.runtime().stop(running, GRACE_S, KILL_LIMIT_S) == ""

    asyncio.run(run())


def test_the_next_daemon_takes_a_container_over_and_its_log_is_whole(home: ContainerHome) -> None:
    # The second half is not written before the next daemon has it.
    halt = "[ $i -ne 31 ] || until [ $taken ]; do /usr/bin/sleep 0.03; done"
    count = (
        "taken=; trap taken=1 USR1; i=0; while [ $i -lt 60 ]; "
        f"do {halt}; echo line $i; echo err $i >&2; i=$((i+1)); /usr/bin/sleep 0.03; done; exit 5"
    )

    async def first() -> None:
        running = await home.start(count)
        waiting = asyncio.ensure_future(running.wait())
        early: dict[str, Any] = {}
        while b"line 30\n" not in (text := home.log().read_bytes()):
            if not early and b"line 3\n" in text:
                early = json.loads(home.log().with_name("small.log.seen").read_bytes())
            await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        seen = home.log().with_name("small.log.seen")
        told = json.loads(seen.read_bytes())
        assert told["size"] == home.log().stat().st_size
        assert early["size"] < told["size"]
        seen.write_text(json.dumps({**told, **early}))  # as a daemon leaves it that dies between the two writes

    async def second() -> None:
        running = await home.runtime().find(home.saved[-1])
        assert running is not None
        assert running.pid == home.saved[-1].pid
        await asyncio.to_thread(home.podman, "kill", "--signal", "USR1", "stoker-small")
        assert await running.wait() == "exit code 5"
        assert await home.runtime().stop(running, GRACE_S, KILL_LIMIT_S) == ""

    asyncio.run(first())
    asyncio.run(second())
    lines = home.log().read_text().splitlines()
    assert sorted(lines) == sorted(f"{kind} {number}" for kind in ("line", "err") for number in range(60))


def test_only_the_very_launch_of_a_handle_is_found(home: ContainerHome) -> None:
    async def run() -> None:
        running = await home.start(SLEEP)
        handle = home.saved[-1]
        runtime = home.runtime()
        assert await runtime.find(handle) is not None
        gone = {"container": "0" * 64, "start_ticks": 1}
        for other in ({"marker": f"{INSTANCE}/small/99"}, gone, {"boot_id": "x"}, {"container": None}):
            assert await runtime.find(msgspec.structs.replace(handle, **other)) is None
        await runtime.stop(running, 0, KILL_LIMIT_S)
        assert await runtime.find(handle) is None

    asyncio.run(run())


def test_containers_of_services_that_are_gone_are_ended(home: ContainerHome) -> None:
    async def run() -> None:
        await home.start(OBEDIENT)
        await home.start(OBEDIENT, service="kept")
        environment = home.service.environment
        assert await end_orphan_containers("other", frozenset(), environment) == []
        assert await end_orphan_containers(INSTANCE, frozenset({"kept"}), environment) == ["stoker-small"]
        assert home.names() == ["stoker-kept"]
        assert [one["Names"] for one in await find_labelled(home.api, {"stoker.service": "kept"})] == [["/stoker-kept"]]
        assert await end_orphan_containers(INSTANCE, frozenset(), {"DOCKER_HOST": "unix:///no/such.sock"}) == []

    asyncio.run(run())
