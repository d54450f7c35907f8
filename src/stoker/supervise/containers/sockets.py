"""Finds the container engines of this machine, by the sockets that they answer at."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from stoker.errors import Refused, WrongUse
from stoker.supervise.containers.api import DockerApi, silent

UNIX = "unix://"
DOCKER, PODMAN = "/var/run/docker.sock", "/run/podman/podman.sock"


def find_engines(environment: Mapping[str, str] = os.environ) -> list[DockerApi]:
    """Returns the engines that have a socket here that we may use, docker before podman; none where there is none.

    `DOCKER_HOST` names the only one, unless it is elsewhere. Nothing is asked yet.
    """
    return [DockerApi(path) for path in _places(environment) if _look(path) is None]


def first_engine(environment: Mapping[str, str] = os.environ) -> DockerApi:
    """Returns the engine at the first place where one would be, there or not."""
    return DockerApi(next(_places(environment), DOCKER))


def need_engines(environment: Mapping[str, str] = os.environ) -> list[DockerApi]:
    """Returns the engines; raises Refused with what was looked at where there is none."""
    _check_host(environment.get("DOCKER_HOST") or UNIX)
    if found := find_engines(environment):
        return found
    seen = [(path, problem) for path in _places(environment) if (problem := _look(path)) is not None]
    for path, problem in seen:
        if isinstance(problem, PermissionError):
            raise silent(path, "Permission denied") from problem
    raise Refused(
        "there is no container engine on this machine that Stoker can speak to",
        why=f"there is no socket at {', '.join(path for path, _ in seen)}",
        next_step="install docker, or start podman's service: `systemctl --user enable --now podman.socket`",
    )


def _places(environment: Mapping[str, str]) -> Iterator[str]:
    if host := environment.get("DOCKER_HOST"):
        yield from [host.removeprefix(UNIX)] if host.startswith(UNIX) else []
        return
    yield DOCKER
    if folder := environment.get("XDG_RUNTIME_DIR"):
        yield f"{folder}/podman/podman.sock"
    yield PODMAN


def _check_host(host: str) -> None:
    if host.startswith(UNIX):
        return
    raise WrongUse(
        f"DOCKER_HOST is {host}, and Stoker speaks to container engines through a socket of this machine alone",
        why="an engine elsewhere would start models on a machine whose memory nobody watches here",
        next_step="unset DOCKER_HOST, or give it as unix:///path/of/the.sock",
    )


def _look(path: str) -> OSError | None:
    """Returns why a path is no socket that we may use, or None where it is one."""
    try:
        if not stat.S_ISSOCK(Path(path).stat().st_mode):
            return FileNotFoundError(path)
    except OSError as problem:
        return problem
    return None if os.access(path, os.R_OK | os.W_OK) else PermissionError(path)
