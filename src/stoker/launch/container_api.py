"""A container as the document that docker's API takes (POST /containers/create); podman's API takes the same. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.errors import Refused
from stoker.launch.container import check_container
from stoker.launch.names import is_volume
from stoker.records import ContainerLaunch, Mount

LABEL_INSTANCE, LABEL_SERVICE = "stoker.instance", "stoker.service"
LABEL_LAUNCH, LABEL_PLAN, LABEL_IMAGE = "stoker.launch", "stoker.plan", "stoker.image"
# Read on into the service's own file; the container engine's copy is only for a daemon that was away for a while.
LOG = {"Type": "json-file", "Config": {"max-size": "64m", "max-file": "2"}}
EVERY_GPU = {"Driver": "nvidia", "Count": -1, "Capabilities": [["gpu"]]}
OOM_SCORE_ADJUST = 500  # if the kernel must kill, then the engine and not the daemon or the user's shell


def render_create(launch: ContainerLaunch, secrets: Mapping[str, str], by_cdi: bool = False) -> dict[str, Any]:
    """Returns the body that creates a container; what was not asked for is left out.

    Stoker itself starts again and removes, so the container gets no policy for its end, whatever `at_exit` says. The
    secrets are seen by whoever may `inspect` containers, and nowhere else. `by_cdi` names all GPUs as CDI does.
    """
    check_container(launch)
    if launch.env_file:
        raise Refused(f"{launch.name} cannot read {launch.env_file}", why="the API takes variables, not a file of them")
    return _said(
        Image=launch.image,
        Entrypoint=None if launch.entrypoint is None else [launch.entrypoint],
        Cmd=list(launch.words),
        Env=[f"{name}={value}" for name, value in {**dict(launch.environment), **secrets}.items()],
        Labels=dict(launch.labels),
        User=launch.user,
        Tty=False,
        StopTimeout=launch.stop_timeout_s,
        ExposedPorts={f"{port.container_port}/tcp": {} for port in launch.publish},
        HostConfig=_host(launch, by_cdi),
    )


def _said(**whole: Any) -> dict[str, Any]:
    return {name: value for name, value in whole.items() if value not in (None, [], {})}


def _host(launch: ContainerLaunch, by_cdi: bool) -> dict[str, Any]:
    return _said(
        Mounts=[_mount(mount) for mount in launch.mounts],
        NetworkMode=launch.network,
        PortBindings={
            f"{port.container_port}/tcp": [{"HostIp": port.address, "HostPort": str(port.host_port)}]
            for port in launch.publish
        },
        Devices=[{"PathOnHost": path, "PathInContainer": path, "CgroupPermissions": "rwm"} for path in launch.devices],
        DeviceRequests=[_gpus(launch.gpus, by_cdi)] if launch.gpus else [],
        IpcMode=launch.ipc,
        ShmSize=launch.shm_size_bytes,
        Ulimits=[{"Name": name, "Soft": value, "Hard": value} for name, value in launch.ulimits],
        ReadonlyRootfs=launch.read_only,
        SecurityOpt=["no-new-privileges"],
        OomScoreAdj=OOM_SCORE_ADJUST,
        LogConfig=LOG,
        RestartPolicy={"Name": "no"},
        AutoRemove=False,
    )


def _mount(mount: Mount) -> dict[str, Any]:
    kind = "volume" if is_volume(mount.host) else "bind"
    return {"Type": kind, "Source": mount.host, "Target": mount.inside, "ReadOnly": mount.read_only}


def _gpus(gpus: str, by_cdi: bool) -> dict[str, Any]:
    if gpus == "all" and not by_cdi:
        return EVERY_GPU
    name = "nvidia.com/gpu=all" if gpus == "all" else gpus
    return {"Driver": "cdi", "DeviceIDs": [name], "Capabilities": [["gpu"]]}
