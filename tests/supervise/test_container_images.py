"""Images fetched from a real registry by a real podman, refused where they cannot run, and kept where they ran well."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from container_home import OBEDIENT, ContainerHome, container_home
from real_tools import OwnPodman
from registry import Registry, own_registry
from stoker.errors import Refused, StokerError
from stoker.flows.images import pull
from stoker.supervise.containers.images import PullProgress, inspect_image, own_arch
from support import fails

OTHER = "s390x"


@pytest.fixture
def registry() -> Iterator[Registry]:
    with own_registry() as registry:
        yield registry


@pytest.fixture
def home(podman: OwnPodman, registry: Registry, tmp_path: Path) -> Iterator[ContainerHome]:
    settings = tmp_path / "registries.conf"
    settings.write_text(f'[[registry]]\nlocation = "{registry.address}"\ninsecure = true\n')
    with container_home(podman, tmp_path, CONTAINERS_REGISTRIES_CONF=str(settings)) as home:
        yield home


def tree(home: ContainerHome, more: bytes = b"") -> bytes:
    """Returns the files of the small image; what follows an archive's end makes it another layer."""
    return (home.podman.folder / "tree.tar").read_bytes() + more.ljust(512, b"\0")


def test_an_image_is_pulled_by_its_digest_and_runs(home: ContainerHome, registry: Registry) -> None:
    digest = registry.add("org/two", "v1", tree(home), (own_arch(), OTHER))
    name = f"{registry.address}/org/two@{digest}"
    seen: list[PullProgress] = []

    async def run() -> None:
        found = await pull(name, seen.append, home.service.environment)
        assert (found.kind, found.name, found.runtime) == ("image", name, "podman")
        assert found.digest is not None
        assert (seen[-1].layers_done, seen[-1].layers) == (2, 2)  # podman counts the description of the image too
        running = await home.start("exit 6", image=name)
        assert await running.wait() == "exit code 6"
        image = await inspect_image(home.api, name)
        assert image is not None
        assert image["Id"] == found.digest
        assert any(one.endswith(digest) for one in image["RepoDigests"])

    asyncio.run(run())
    assert f"/v2/org/two/manifests/{digest}" in registry.asked
    assert not any(path.endswith("/v1") for path in registry.asked)


def test_an_image_for_other_processors_is_refused_before_a_layer_of_it_is_fetched(
    home: ContainerHome, registry: Registry
) -> None:
    registry.add("org/other", "v1", tree(home), (OTHER,))

    async def run() -> None:
        with fails(Refused, f"is made for {OTHER}", own_arch(), "arm64-manifest-needed"):
            await pull(f"{registry.address}/org/other:v1", environment=home.service.environment)

    asyncio.run(run())
    assert registry.asked
    assert not [path for path in registry.asked if "/blobs/" in path]


def test_a_tag_that_is_not_there_is_said_with_the_registrys_words(home: ContainerHome, registry: Registry) -> None:
    async def run() -> None:
        with fails(StokerError, "was not pulled", "404"):
            await pull(f"{registry.address}/org/none:v9", environment=home.service.environment)

    asyncio.run(run())


def test_the_images_that_were_ready_outlive_a_pull_of_the_same_tag_and_a_prune(
    home: ContainerHome, registry: Registry
) -> None:
    name = f"{registry.address}/org/moving:v1"

    async def ready() -> str:
        await pull(name, environment=home.service.environment)
        running = await home.start(OBEDIENT, image=name)
        good = await home.runtime().keep_good(running, name)
        assert good is not None
        assert (good.service, good.name) == ("small", name)
        assert await home.runtime().keep_good(running, name) is not None  # once more changes nothing
        assert await home.runtime().stop(running, 60, 20) == ""
        return good.image_id

    async def run() -> None:
        ids = []
        for more in (b"1", b"2", b"3"):
            registry.add("org/moving", "v1", tree(home, more), (own_arch(),))
            ids.append(await ready())
        assert len(set(ids)) == 3
        await asyncio.to_thread(home.podman, "image", "prune", "--force")
        before, good = [await inspect_image(home.api, f"stoker.local/{kind}:small") for kind in ("before", "good")]
        assert [one and one["Id"] for one in (before, good)] == ids[1:]
        assert await inspect_image(home.api, ids[0]) is None
        running = await home.start("exit 7", image="stoker.local/before:small")
        assert await running.wait() == "exit code 7"
        running = await home.start("exit 8", image=ids[2])
        assert await running.wait() == "exit code 8"

    asyncio.run(run())
