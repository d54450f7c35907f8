"""Container images for services: fetched with progress before a start, so that no start waits for a download."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from os import environ

import msgspec

from stoker.box import LocalBox
from stoker.facts.engine.image import find_image, parse_image
from stoker.records import Environment
from stoker.supervise.containers.images import PullProgress, as_printed, pull_image
from stoker.supervise.containers.sockets import need_engines


def _in_silence(progress: PullProgress) -> None:
    """Says nothing."""


async def pull(
    image: str, on_progress: Callable[[PullProgress], None] = _in_silence, environment: Mapping[str, str] = environ
) -> Environment:
    """Fetches an image with the first container engine there is; raises StokerError or Refused where it cannot work here.

    `on_progress` is called for every line that the engine sends, some hundred times a second at most.
    """
    api = need_engines(environment)[0]
    found = parse_image(image, as_printed(await pull_image(api, image, on_progress)))
    runtime = "docker" if await api.podman_version() is None else "podman"
    return msgspec.structs.replace(found or Environment("image", image), runtime=runtime)


def fetch_image(image: str, is_dry_run: bool, tell: Callable[[str], None]) -> None:
    """Fetches an image that is not here, telling each layer that is done; raises StokerError or Refused."""
    if find_image(LocalBox(), image) is not None:
        tell(f"the image {image} is here")
        return
    if is_dry_run:
        tell(f"the image {image} is not here, and would be fetched")
        return
    seen = PullProgress()

    def show(progress: PullProgress) -> None:
        nonlocal seen
        if progress.layers_done > seen.layers_done:
            tell(f"{image}: {progress}")
            seen = progress

    tell(f"the image {image}: fetched by the container engine")
    found = asyncio.run(pull(image, show))
    tell(f"the image {image} is here, {found.digest or 'its id is unknown'}")
