"""Images of the container engine: is one here, is it for this processor, fetch it, keep the good ones."""

from __future__ import annotations

import json
import platform
import re
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from stoker.errors import Refused, StokerError
from stoker.launch.container import full_image
from stoker.records import GoodImage, Record, say_bytes
from stoker.supervise.containers.api import ApiProblem, DockerApi

SILENCE_LIMIT_S = 600.0  # podman says nothing while it unpacks a layer of many GB
MANIFEST_LIMIT_S = 60.0
ARCHES = {"aarch64": "arm64", "x86_64": "amd64"}  # as kernels say it, and as images are labelled
WRONG_ARCH = "arm64-manifest-needed"
NO_MANIFEST = ("no matching manifest", "no image found in")
GOOD, BEFORE = "stoker.local/good", "stoker.local/before"
MOST_GOOD = 5
ID = re.compile(r"(sha256:)?[0-9a-f]{64}")  # podman leaves the kind of hash out

Document = dict[str, Any]


class PullProgress(Record, frozen=True):
    """How far a pull is: bytes of the layers whose size is known by now, and layers that are done."""

    done_bytes: int = 0
    total_bytes: int = 0
    layers_done: int = 0
    layers: int = 0

    def __str__(self) -> str:
        """Returns it as people read it."""
        size = f", {say_bytes(self.done_bytes)} of {say_bytes(self.total_bytes)} known" if self.total_bytes else ""
        return f"{self.layers_done} of {self.layers} layers{size}"


class Layers:
    """The layers of one pull, put together from the lines that the engine sends about each."""

    def __init__(self) -> None:
        self._bytes: dict[str, tuple[int, int]] = {}
        self._done: dict[str, bool] = {}

    def add(self, line: Document) -> PullProgress:
        """Takes one line, and returns how far the whole is."""
        layer, status, detail = line.get("id"), str(line.get("status", "")), line.get("progressDetail") or {}
        if layer and not status.startswith("Pulling from"):
            # Unpacking counts the same bytes once more.
            if detail.get("total") and status == "Downloading":
                self._bytes[layer] = (int(detail.get("current") or 0), int(detail["total"]))
            self._done[layer] = status in ("Download complete", "Pull complete", "Already exists") or (
                self._done.get(layer, False) and status != "Downloading"
            )
            if self._done[layer] and layer in self._bytes:
                self._bytes[layer] = (self._bytes[layer][1],) * 2
        current, total = (sum(sizes) for sizes in zip(*self._bytes.values(), strict=True)) if self._bytes else (0, 0)
        return PullProgress(current, total, sum(self._done.values()), len(self._done))


def own_arch() -> str:
    """Returns this machine's processor as images are labelled."""
    return ARCHES.get(platform.machine(), platform.machine())


def split_name(name: str) -> tuple[str, str]:
    """Returns an image's repository, and its digest or else its tag: without one docker would pull all tags."""
    repository, _, digest = name.partition("@")
    head, slash, last = repository.rpartition("/")
    last, _, tag = last.partition(":")
    return f"{head}{slash}{last}", digest or tag or "latest"


async def inspect_image(api: DockerApi, name: str) -> Document | None:
    """Returns all that is known of an image, by its name or id; None where it is not here."""
    whole = name if ID.fullmatch(name) else full_image(name)
    found = await api.call("GET", f"/images/{whole}/json")
    return found if isinstance(found, dict) else None


def name_of(image: Document) -> str:
    """Returns the name that an image has in its registry, by digest; its own id where it came from none."""
    return str((image.get("RepoDigests") or [image["Id"]])[0])


async def need_image(engines: list[DockerApi], name: str, service: str) -> tuple[DockerApi, Document]:
    """Returns the first engine that has an image, and the image; raises Refused where none has, or it cannot run here."""
    problems: list[StokerError] = []
    for api in engines:
        try:
            found = await inspect_image(api, name)
        except StokerError as problem:
            problems.append(problem)
            continue
        if found is not None:
            check_arch(name, {str(found.get("Architecture"))})
            return api, found
    if problems and len(problems) == len(engines):
        raise problems[0]
    raise Refused(f"the image {name} is not on this machine", next_step=f"`stoker fetch {service}` pulls it")


def check_arch(name: str, arches: set[str]) -> None:
    """Raises Refused where an image is made for other processors than this machine's."""
    if own_arch() in arches:
        return
    raise Refused(
        f"{name} is made for {', '.join(sorted(arches))}, and this machine is {own_arch()}",
        why="its programs would end with `exec format error`",
        next_step=f"take an image with an {own_arch()} manifest, or build it on this machine",
        rule=WRONG_ARCH,
    )


async def pull_image(api: DockerApi, name: str, on_progress: Callable[[PullProgress], None]) -> Document:
    """Fetches an image, and returns what is known of it; one for other processors is refused before it is fetched."""
    arches = await read_arches(api, name)
    if arches:
        check_arch(name, arches)
    repository, tag = split_name(full_image(name))
    layers = Layers()
    query = {"fromImage": repository, "tag": tag}
    async with api.stream("POST", "/images/create", silence_limit_s=SILENCE_LIMIT_S, **query) as blocks:
        async for line in _lines(blocks):
            if line.get("error"):
                raise _not_pulled(name, str(line["error"]))
            on_progress(layers.add(line))
    found = await inspect_image(api, name)
    if found is None:
        raise StokerError(f"{name} was pulled, and the container engine does not have it", why=f"asked at {api.socket}")
    check_arch(name, {str(found.get("Architecture"))})
    return found


async def _lines(blocks: AsyncIterator[bytes]) -> AsyncIterator[Document]:
    waiting = b""
    async for block in blocks:
        *whole, waiting = (waiting + block).split(b"\n")
        for line in whole:
            if line.strip():
                yield _decoded(line)
    if waiting.strip():
        yield _decoded(waiting)


def _decoded(line: bytes) -> Document:
    try:
        return msgspec.json.decode(line, type=dict)
    except msgspec.MsgspecError as problem:
        raise StokerError("the container engine broke off in the middle of a line", why=str(problem)) from problem


def _not_pulled(name: str, said: str) -> StokerError:
    if any(sign in said for sign in NO_MANIFEST):
        return Refused(f"{name} is not made for this machine's {own_arch()}", why=said, rule=WRONG_ARCH)
    return StokerError(
        f"{name} was not pulled", why=said,
        next_step="look at its name and tag; for a registry that wants a login, pull it once by hand with "
        "`docker pull` or `podman pull`",
    )  # fmt: skip


async def read_arches(api: DockerApi, name: str) -> set[str]:
    """Returns the processors that an image is made for, as its registry says; none where that cannot be asked."""
    whole = full_image(name)
    try:
        if await api.podman_version() is None:
            told = await api.call("GET", f"/distribution/{whole}/json", limit_s=MANIFEST_LIMIT_S)
            platforms = (told or {}).get("Platforms") or []
        else:
            told = await api.call_podman(f"/manifests/{whole}/json", limit_s=MANIFEST_LIMIT_S)
            platforms = [one.get("platform") or {} for one in (told or {}).get("manifests") or []]
    except ApiProblem:  # a name that is wrong is told better by the pull itself
        return set()
    # Signatures and build records stand beside the images as platforms of their own, called unknown.
    return {one["architecture"] for one in platforms if one.get("architecture") not in (None, "", "unknown")}


async def keep_image(api: DockerApi, service: str, image_id: str) -> None:
    """Gives the image in which a service was READY a name of ours, so that no pull or prune takes it away.

    The one before it gets the other name. `docker image prune --all` alone removes them, once nothing runs in them.
    """
    old = await inspect_image(api, f"{GOOD}:{service}")
    if old is not None and old["Id"] == image_id:
        return
    if old is not None:
        await _tag(api, old["Id"], BEFORE, service)
    await _tag(api, image_id, GOOD, service)


async def _tag(api: DockerApi, image_id: str, repository: str, tag: str) -> None:
    if await api.call("POST", f"/images/{image_id}/tag", repo=repository, tag=tag) is None:
        raise StokerError(f"the image {image_id[:19]} is not here any more, and cannot be kept")


def remember_good(kept: tuple[GoodImage, ...], good: GoodImage) -> tuple[GoodImage, ...]:
    """Returns a service's good images with one more, the newest first, each image once."""
    others = (one for one in kept if one.image_id != good.image_id)
    return (good, *others)[:MOST_GOOD]


def good_image(service: str, name: str, image: Document) -> GoodImage:
    """Returns the record of an image in which a service is READY now."""
    digests = image.get("RepoDigests") or [None]
    return GoodImage(service, name, str(image["Id"]), digests[0], time.time())


def as_printed(image: Document) -> str:
    """Returns an image as `docker image inspect` prints it."""
    return json.dumps([image])
