"""A launch as values, before it becomes a command line, a compose file, a unit or an image."""

from __future__ import annotations

from typing import Literal

from stoker.records.base import Record

AtExit = Literal["keep", "remove", "on-failure", "always", "unless-stopped"]
UnitKind = Literal["exec", "notify", "oneshot"]
UnitAction = Literal["start", "stop", "restart"]
Pairs = tuple[tuple[str, str], ...]


class Mount(Record, frozen=True):
    """A folder or file of the host and where the container sees it."""

    host: str
    inside: str
    read_only: bool = True


class Publish(Record, frozen=True):
    """A port of the container and where the host answers for it; loopback unless somebody says otherwise."""

    container_port: int
    host_port: int
    address: str = "127.0.0.1"


class ContainerLaunch(Record, frozen=True):
    """An engine in a container: what docker, podman, compose and quadlet all have to be told.

    `words` follow the image; `entrypoint` takes the place of the image's own program. Ports are published, or `network` is
    `host`, never both. `gpus` is `all` or a CDI name such as `nvidia.com/gpu=all`. `devices` are paths
    of the host's, such as /dev/infiniband. `at_exit` is one choice, since docker
    refuses to remove a container and to restart it; `restart_tries` bounds `on-failure`. `env_file` holds the secrets, as
    NAME=value lines without quotes or `$`: docker, compose and systemd read those differently.
    """

    name: str
    image: str
    words: tuple[str, ...] = ()
    entrypoint: str | None = None
    environment: Pairs = ()
    env_file: str | None = None
    mounts: tuple[Mount, ...] = ()
    publish: tuple[Publish, ...] = ()
    devices: tuple[str, ...] = ()
    network: Literal["host"] | None = None
    gpus: str | None = None
    ipc: Literal["host"] | None = None
    shm_size_bytes: int | None = None
    ulimits: tuple[tuple[str, int], ...] = ()
    labels: Pairs = ()
    user: str | None = None
    read_only: bool = False
    at_exit: AtExit = "keep"
    restart_tries: int = 3
    stop_timeout_s: int | None = None


class UnitLaunch(Record, frozen=True):
    """A program that systemd starts and stops.

    `start_timeout_s` None means that the program itself knows its limits. `restart_pause_s` None means no restart; the
    window has to be longer than all the tries take, or it never ends them. `keeps_children` lets what the program has
    started outlive its crash. `uses_sudo`: it starts other units, as sudoers lines allow. `conditions` are paths without
    which the start fails. `wants` are units to start before it.
    """

    name: str
    description: str
    argv: tuple[str, ...]
    user: str
    group: str | None = None
    kind: UnitKind = "exec"
    stop_argv: tuple[str, ...] = ()
    environment: Pairs = ()
    env_file: str | None = None
    working_directory: str | None = None
    wants: tuple[str, ...] = ("network-online.target",)
    conditions: tuple[str, ...] = ()
    start_timeout_s: int | None = None
    stop_timeout_s: int = 90
    restart_pause_s: int | None = None
    restart_tries: int = 3
    restart_window_s: int = 3600
    final_exit_codes: tuple[int, ...] = ()
    keeps_children: bool = False
    oom_score_adjust: int | None = None
    uses_sudo: bool = False


class ImageOverlay(Record, frozen=True):
    """An image whose Python sources of one package are replaced by those of a commit; its compiled parts stay.

    `package` is the Python package and its folder in the repository. `checksums` are files of the repository and their
    SHA-256: those that the overlay is made for, so that a wrong commit does not pass for the right one.
    """

    base: str
    package: str
    repository: str
    commit: str
    because: str
    digest: str | None = None
    checksums: Pairs = ()


class RenderedFile(Record, frozen=True):
    """A file as it is to be put in place: its whole path, its octal mode, its text."""

    path: str
    mode: str
    text: str


class InstallFinding(Record, frozen=True):
    """Something of an installation that is not as it should be: what, why we think so, and what to do."""

    what: str
    why: str
    fix: str


class VerifyView(Record, frozen=True):
    """What `stoker install --verify` found; `unknown` is what this user may not see."""

    service: str
    user: str
    findings: tuple[InstallFinding, ...]
    unknown: tuple[str, ...] = ()


class UninstallView(Record, frozen=True):
    """The commands that undo an installation, and what they leave."""

    service: str
    user: str
    commands: tuple[str, ...]
    kept: tuple[str, ...] = ()


class InstallView(Record, frozen=True):
    """What `stoker install` would put in place, and the commands that do it; `refused` is why that must not be done so."""

    service: str
    user: str
    files: tuple[RenderedFile, ...]
    commands: tuple[str, ...]
    refused: str = ""
