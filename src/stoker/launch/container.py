"""A container as the words of `docker run` or `podman run`; a list to the very end, so that nothing needs quoting."""

from __future__ import annotations

import ipaddress

from stoker.errors import Refused
from stoker.launch.names import (
    CONTAINER,
    GPUS,
    IMAGE,
    UNWRITABLE,
    USER_IN_CONTAINER,
    check_no_secret,
    check_path,
    check_plain_path,
    check_variable,
    is_volume,
)
from stoker.records import ContainerLaunch, Mount, Publish

ALL_GPUS_CDI = "nvidia.com/gpu=all"


def render_docker_run(launch: ContainerLaunch, detached: bool = True) -> tuple[str, ...]:
    """Returns the argv of `docker run`."""
    check_container(launch)
    return ("docker", "run", *_detach(detached), *_options(launch), *_docker_gpus(launch), launch.image, *launch.words)


def render_podman_run(launch: ContainerLaunch, detached: bool = True) -> tuple[str, ...]:
    """Returns the argv of `podman run`; it knows GPUs by their CDI names, and images best by their full ones."""
    check_container(launch)
    gpus = ("--device", cdi_name(launch.gpus)) if launch.gpus else ()
    return ("podman", "run", *_detach(detached), *_options(launch), *gpus, full_image(launch.image), *launch.words)


def check_container(launch: ContainerLaunch) -> None:
    """Raises Refused for what docker, compose or podman would understand as something else, or would show to everybody."""
    if not CONTAINER.fullmatch(launch.name) or not IMAGE.fullmatch(launch.image):
        raise Refused(
            f"a container {launch.name!r} of the image {launch.image!r} cannot be written down",
            why="a name has letters, digits, '_', '.' and '-'; an image its repository, tag and digest, without spaces",
        )
    if launch.network == "host" and launch.publish:
        raise Refused(
            f"{launch.name} cannot publish ports on the host's own network",
            why="docker drops published ports there, so the engine's own --host would decide who reaches it",
            next_step="leave `network` out, and the ports are published on loopback alone",
        )
    for mount in launch.mounts:
        if not is_volume(mount.host):
            check_path(mount.host, "the mount")
        check_path(mount.inside, "the mount's place")
    for path in launch.devices:
        check_plain_path(path, "the device")
    if launch.env_file:
        check_plain_path(launch.env_file, "the environment file")
    _check_words(launch)
    check_no_secret(launch.name, [(check_variable(name), value) for name, value in launch.environment], launch.words)


def _check_words(launch: ContainerLaunch) -> None:
    gpus, user = launch.gpus or "all", launch.user or "root"
    if not GPUS.fullmatch(gpus) or not USER_IN_CONTAINER.fullmatch(user):
        raise Refused(f"{launch.name} cannot have the GPUs {gpus!r} and the user {user!r}", why="a word of those is no name")
    for port in launch.publish:
        _check_address(port.address)
    pairs = (*launch.environment, *launch.labels)
    words = (launch.entrypoint or "", *launch.words, *(text for pair in pairs for text in pair))
    if any(UNWRITABLE.search(word) for word in words):
        raise Refused(f"a word of {launch.name} holds a NUL, a control character that ends it, or is not UTF-8")


def _check_address(address: str) -> None:
    try:
        ipaddress.ip_address(address)
    except ValueError as problem:
        raise Refused(f"{address!r} is no address to publish a port on", next_step="use 127.0.0.1") from problem


def cdi_name(gpus: str) -> str:
    """Returns a GPU's name for engines that know devices by CDI (`nvidia-ctk cdi generate` makes them known)."""
    return ALL_GPUS_CDI if gpus == "all" else gpus


def full_image(image: str) -> str:
    """Returns an image's name with its registry: without a terminal podman refuses to guess one."""
    first, slash, _ = image.partition("/")
    if not slash:
        return f"docker.io/library/{image}"
    return image if "." in first or ":" in first or first == "localhost" else f"docker.io/{image}"


def published(port: Publish) -> str:
    """Returns a published port as docker, podman and compose write it."""
    host = f"[{port.address}]" if ":" in port.address else port.address
    return f"{host}:{port.host_port}:{port.container_port}"


def restart_policy(launch: ContainerLaunch) -> str | None:
    """Returns the restart policy as docker, podman and compose write it, or None for none."""
    if launch.at_exit == "on-failure":
        return f"on-failure:{launch.restart_tries}"
    return None if launch.at_exit in ("keep", "remove") else launch.at_exit


def _detach(detached: bool) -> tuple[str, ...]:
    return ("--detach",) if detached else ()


def _docker_gpus(launch: ContainerLaunch) -> tuple[str, ...]:
    if not launch.gpus:
        return ()
    return ("--gpus", "all") if launch.gpus == "all" else ("--device", launch.gpus)


def _options(launch: ContainerLaunch) -> list[str]:
    """Returns the options that docker and podman spell alike."""
    pairs = [("--name", launch.name), *_at_exit(launch), *_network(launch), *_limits(launch)]
    pairs += [("--mount", _mount(mount)) for mount in launch.mounts]
    pairs += [("--device", path) for path in launch.devices]
    if launch.env_file:
        pairs.append(("--env-file", launch.env_file))
    pairs += [("--env", f"{name}={value}") for name, value in launch.environment]
    pairs += [("--label", f"{name}={value}") for name, value in launch.labels]
    if launch.entrypoint is not None:
        pairs.append(("--entrypoint", launch.entrypoint))
    switches = ["--rm"] if launch.at_exit == "remove" else []
    switches += ["--read-only"] if launch.read_only else []
    return [*switches, *(word for pair in pairs for word in pair)]


def _at_exit(launch: ContainerLaunch) -> list[tuple[str, str]]:
    policy = restart_policy(launch)
    pairs = [("--restart", policy)] if policy else []
    if launch.stop_timeout_s is not None:
        pairs.append(("--stop-timeout", str(launch.stop_timeout_s)))
    return pairs


def _network(launch: ContainerLaunch) -> list[tuple[str, str]]:
    if launch.network:
        return [("--network", launch.network)]
    return [("--publish", published(port)) for port in launch.publish]


def _limits(launch: ContainerLaunch) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = [("--ipc", launch.ipc)] if launch.ipc else []
    if launch.shm_size_bytes is not None:
        pairs.append(("--shm-size", str(launch.shm_size_bytes)))
    pairs += [("--ulimit", f"{name}={value}") for name, value in launch.ulimits]
    return pairs + ([("--user", launch.user)] if launch.user else [])


def _mount(mount: Mount) -> str:
    # Not --volume: for a mistyped path docker makes an empty folder there, owned by root, and the engine finds no model.
    kind = "volume" if is_volume(mount.host) else "bind"
    return f"type={kind},source={mount.host},target={mount.inside}" + (",readonly" if mount.read_only else "")
