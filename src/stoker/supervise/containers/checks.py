"""What has to be true before a container is created: what engines would let pass in silence, or say in riddles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from stoker.errors import Refused, StokerError
from stoker.launch.container_api import LABEL_INSTANCE, LABEL_SERVICE
from stoker.launch.names import is_volume
from stoker.launch.places import DRAFT_INSIDE, MODEL_INSIDE, find_hub_folder
from stoker.records import ContainerLaunch, Plan
from stoker.supervise.containers.api import DockerApi
from stoker.supervise.containers.calls import end_container, inspect, is_running, remove_container

LEFTOVER_GRACE_S, LEFTOVER_KILL_LIMIT_S = 15.0, 10.0
PODMAN_WITH_GPUS = (5, 4)
# What engines say when a start fails, and what to do; docker's of GPUs and ports as its issues quote them, the others seen.
ADVICE = (
    (
        "could not select device driver",
        "install NVIDIA's container toolkit, then `sudo nvidia-ctk runtime configure` and restart docker",
    ),
    ("executable file not found", "set `program` of the service to the words that start its engine in this image"),
    ("no such file or directory", "set `program` of the service to the words that start its engine in this image"),
    ("port is already allocated", "end what has the port, or give the service another one"),
    ("address already in use", "end what has the port, or give the service another one"),
)


def with_real_paths(plan: Plan) -> Plan:
    """Returns the plan with its files instead of links to them: the container sees the folder of what is named."""
    settings = tuple(msgspec.structs.replace(one, value=_real(one.value)) for one in plan.settings)
    return msgspec.structs.replace(plan, model_path=_real(plan.model_path), settings=settings)


T = TypeVar("T")


def _real(value: T) -> T | str:
    if not isinstance(value, str) or not value.startswith("/") or find_hub_folder(value):  # its blobs are mounted too
        return value
    path = Path(value)
    return str(path.resolve()) if path.is_symlink() and path.is_file() else value


def check_mounts(launch: ContainerLaunch) -> None:
    """Raises Refused where a folder that is to be mounted is not there."""
    for mount in launch.mounts:
        # Podman 4.3 makes an empty folder there, owned by root, and the engine finds no model.
        if not is_volume(mount.host) and not Path(mount.host).exists():
            raise Refused(
                f"{mount.host} is not there, and {launch.name} is to see it at {mount.inside}",
                next_step="correct the model's path, or `mounts` in stoker.toml",
            )
    for mount in launch.mounts:
        if mount.inside in (MODEL_INSIDE, DRAFT_INSIDE) and mount.inside in launch.words:  # the folder is what is loaded
            _check_links(Path(mount.host), launch)


def _check_links(folder: Path, launch: ContainerLaunch) -> None:
    """Raises Refused where a model's folder holds links that lead to nothing in the container."""
    seen = [folder.resolve(), *(Path(mount.host) for mount in launch.mounts if mount.host == mount.inside)]
    for entry in sorted(folder.iterdir()) if folder.is_dir() else []:
        target = entry.resolve()
        if entry.is_symlink() and not any(target.is_relative_to(place) for place in seen):
            raise Refused(
                f"{entry} is a link to {target}, which the container would not see",
                why=f"only {folder} is mounted into it",
                next_step=f"name {target.parent} as the model, or add '{target.parent}:{target.parent}:ro' to `mounts`",
            )


async def check_gpus(api: DockerApi, launch: ContainerLaunch) -> None:
    """Raises Refused where podman would start the engine without the GPUs that it was given, and not say so."""
    version = await api.podman_version()
    if launch.gpus is None or version is None or version >= PODMAN_WITH_GPUS:
        return
    # Tried with 4.3: `DeviceRequests` are taken and ignored, and a CDI name under `Devices` is looked for as a file.
    raise Refused(
        f"podman {'.'.join(map(str, version))} cannot give GPUs to {launch.name}",
        why="its docker API hands CDI devices on since 5.4; older ones start the container without them",
        next_step="run the service with docker and NVIDIA's container toolkit, or with podman 5.4 or newer",
    )


async def free_name(api: DockerApi, name: str, instance: str) -> None:
    """Ends and removes what a former launch left under a container's name; raises Refused where it is somebody else's."""
    found = await inspect(api, name)
    if found is None:
        return
    labels = found["Config"].get("Labels") or {}
    if labels.get(LABEL_INSTANCE) != instance:
        raise Refused(
            f"there is a container {name} already, and it was not started by this Stoker",
            why=f"it is made of {found['Config'].get('Image')} and {_owner(labels)}"
            + (", and it runs" if is_running(found) else ""),
            next_step=f"remove it (`docker rm -f {name}`) if nobody needs it, or call the service otherwise",
        )
    await end_container(api, found["Id"], LEFTOVER_GRACE_S, LEFTOVER_KILL_LIMIT_S)
    await remove_container(api, found["Id"])


def _owner(labels: Mapping[str, str]) -> str:
    other, service = labels.get(LABEL_INSTANCE), labels.get(LABEL_SERVICE)
    return f"belongs to the service {service} of another state folder ({other})" if other else "carries no label of ours"


def advise(problem: StokerError) -> StokerError:
    """Returns the error of a start that failed, with what to do where that is known."""
    problem.next_step = next((advice for sign, advice in ADVICE if sign in problem.what), problem.next_step)
    return problem


@contextmanager
def without_secrets(secrets: Mapping[str, str]) -> Iterator[None]:
    """Takes the secrets out of what a container engine says when it refuses what it was given."""
    try:
        yield
    except StokerError as problem:
        for secret in filter(None, secrets.values()):
            problem.what = problem.what.replace(secret, "...")
        raise
