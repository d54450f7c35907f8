"""Containers that cannot be started, and engines that fail: what a real podman is refused, and what its end does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from container_home import GRACE_S, KILL_LIMIT_S, OBEDIENT, SLEEP, ContainerHome, container_home
from real_tools import OwnPodman
from stoker.errors import Refused, StokerError
from stoker.supervise.runtimes.container import ContainerRuntime
from support import fails


@pytest.fixture
def home(podman: OwnPodman, tmp_path: Path) -> Iterator[ContainerHome]:
    with container_home(podman, tmp_path) as home:
        yield home


def test_a_name_taken_by_somebody_else_is_refused_and_our_own_leftover_replaced(home: ContainerHome) -> None:
    async def run() -> None:
        await home.start(OBEDIENT)
        first = home.saved[-1].container
        await home.start(SLEEP)
        assert home.saved[-1].container != first
        with fails(Refused, "there is a container stoker-small already", "another state folder (test1)", "and it runs"):
            await home.start(SLEEP, home.runtime(instance="other"))
        assert await home.runtime().stop(None, 0, KILL_LIMIT_S) == ""
        home.podman("create", "--name", "stoker-small", "localhost/tiny:1", "sh")
        with fails(Refused, "docker rm -f stoker-small", "carries no label of ours"):
            await home.start(SLEEP)
        assert await home.runtime().stop(None, 0, KILL_LIMIT_S) == ""
        assert home.names() == ["stoker-small"]

    asyncio.run(run())


def test_what_cannot_start_leaves_nothing_behind_and_never_shows_the_key(home: ContainerHome) -> None:
    async def run() -> None:
        for changes, words in (
            ({"program": ("/nosuch",)}, "set `program` of the service"),
            ({"image": "localhost/none:1"}, "`stoker fetch small` pulls it"),
            ({"mounts": (("/no/such/folder", "/x"),)}, "/no/such/folder is not there"),
        ):
            with pytest.raises(StokerError) as caught:
                await home.start(SLEEP, **changes)
            assert words in str(caught.value)
            assert "s3cret-key" not in str(caught.value)
        assert home.names() == []

    asyncio.run(run())
    assert not Path("/no").exists()


def test_a_model_behind_a_link_is_seen_and_a_folder_of_links_is_refused(home: ContainerHome, tmp_path: Path) -> None:
    link, folder = tmp_path / "link.gguf", tmp_path / "linked"
    link.symlink_to(home.model)
    folder.mkdir()
    (folder / "model.safetensors").symlink_to(home.model)

    async def run() -> None:
        running = await home.start("", model_path=str(link), program=("/bin/sh", "-c", '/usr/bin/cat "$2"', "sh"))
        assert await running.wait() == "exit code 0"
        with fails(Refused, "is a link to", f"add '{home.model.parent}:{home.model.parent}:ro' to `mounts`"):
            await home.start("", model_path=str(folder))

    asyncio.run(run())
    assert home.log().read_bytes().endswith(b"GGUF")


def test_gpus_are_refused_where_this_podman_would_drop_them_in_silence(home: ContainerHome) -> None:
    async def run() -> None:
        version = await home.api.podman_version()
        assert version is not None
        if version < (5, 4):
            with fails(Refused, "cannot give GPUs to stoker-small"):
                await home.start(SLEEP, home.runtime(has_gpu=True))
        assert home.names() == []

    asyncio.run(run())


def test_a_service_of_the_engine_that_dies_is_no_end_of_the_container(home: ContainerHome) -> None:
    async def run() -> None:
        running = await home.start("echo before; while [ ! -e /model/go ]; do /usr/bin/sleep 0.05; done; echo after; exit 4")
        waiting = asyncio.ensure_future(running.wait())
        home.service.end()
        with pytest.raises(StokerError, match="does not answer"):
            await running.api.call("GET", "/containers/json")
        assert running.is_alive()
        assert not waiting.done()
        home.service.start()
        adopted = await home.runtime().find(home.saved[-1])
        assert adopted is not None
        (home.model.parent / "go").touch()
        assert await waiting == "exit code 4"
        assert home.log().read_bytes() == b"before\nafter\n"

    asyncio.run(run())


def test_an_engine_that_is_gone_for_good_makes_nobody_wait_for_ever(home: ContainerHome) -> None:
    async def run() -> None:
        running = await home.start(SLEEP)
        waiting = asyncio.ensure_future(running.wait())
        home.service.end()
        runtime: ContainerRuntime = home.runtime()
        with fails(Refused, "there is no container engine"):
            await home.start(SLEEP, runtime)
        adopted = await runtime.find(home.saved[-1])
        assert adopted is not None
        assert adopted.pid == running.pid
        with pytest.raises(StokerError, match="does not answer"):
            await runtime.stop(adopted, GRACE_S, KILL_LIMIT_S)
        assert await runtime.stop(None, GRACE_S, KILL_LIMIT_S) == ""
        home.podman("kill", "stoker-small")
        assert "its container engine does not tell" in await waiting

    asyncio.run(run())


def test_an_engine_that_hangs_is_waited_for_no_longer_than_the_limit(home: ContainerHome) -> None:
    async def run() -> None:
        api = home.api
        await api.about()
        home.service.hang()
        with pytest.raises(StokerError, match="does not answer"):
            await api.call("GET", "/containers/json", limit_s=0.2)
        with pytest.raises(StokerError, match="does not answer"):
            async with api.stream("POST", "/images/create", silence_limit_s=0.2, fromImage="a/b", tag="c"):
                pass

    asyncio.run(run())
