"""What a container's engine tells of it, as the launch that it is. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

LOOPBACK = frozenset({"127.0.0.1", "0.0.0.0", "", "::", "::1"})


def words_of_container(found: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the words by which a container was started: its entrypoint's, then its command's."""
    config = found.get("Config") or {}
    return (*_words(config.get("Entrypoint")), *_words(config.get("Cmd")))


def _words(value: object) -> Sequence[str]:
    if isinstance(value, str):
        return value.split()
    return [str(word) for word in value] if isinstance(value, list) else []


def variables_of_container(found: Mapping[str, Any]) -> dict[str, str]:
    """Returns a container's variables."""
    pairs = (str(line).partition("=") for line in (found.get("Config") or {}).get("Env") or ())
    return {name: value for name, _, value in pairs}


def host_port(found: Mapping[str, Any], inside: int) -> int | None:
    """Returns where this machine answers for a port of the container's; None where it does not."""
    if (found.get("HostConfig") or {}).get("NetworkMode") == "host":
        return inside
    bound = ((found.get("NetworkSettings") or {}).get("Ports") or {}).get(f"{inside}/tcp") or ()
    return next((int(one["HostPort"]) for one in bound if one.get("HostIp", "") in LOOPBACK), None)


def host_path(found: Mapping[str, Any], inside: str) -> str | None:
    """Returns where a path of the container's lies on the host; None where it is in the image or in a volume."""
    for mount in found.get("Mounts") or ():
        place = PurePosixPath(str(mount.get("Destination", "/no")))
        path = PurePosixPath(inside)
        if mount.get("Type") == "bind" and (path == place or place in path.parents):
            return str(PurePosixPath(str(mount["Source"])) / path.relative_to(place))
    return None
