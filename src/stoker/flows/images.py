"""Container images for services: fetched with progress before a start, so that no start waits for a download."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import environ

import msgspec

from stoker.facts.engine.image import parse_image
from stoker.records import Environment
from stoker.supervise.container_engines import need_engines
from stoker.supervise.images import PullProgress, as_printed, pull_image


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
