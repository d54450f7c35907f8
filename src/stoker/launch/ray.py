"""Ray's own processes as launches: alone on a worker's box, and beside the engine on the head. Pure."""

from __future__ import annotations

import msgspec

from stoker.records import LaunchSpec
from stoker.records.ranks import Ray

STARTED = r"Ray runtime started\."
# Newer vLLMs hand what begins with NCCL_ on to all boxes (vllm/ray/ray_env.py), and these are each box's own.
OF_ONE_BOX = frozenset({"NCCL_SOCKET_IFNAME", "NCCL_IB_HCA"})
# What Ray puts behind its folder, at its longest; the kernel takes 107 bytes for the path of a socket.
SOCKET = "/session_2026-01-01_00-00-00_000000_4194304/sockets/plasma_store.1"
MOST_SOCKET_BYTES = 107


def as_ray(spec: LaunchSpec, ray: Ray) -> LaunchSpec:
    """Returns the launch of Ray's processes with the variables of the engine, whose workers they will start."""
    return msgspec.structs.replace(
        spec, argv=ray.words, health_path="", key_variable=None, ready_line=STARTED, folder="/"
    )  # fmt: skip


def has_short_sockets(folder: str) -> bool:
    """Tells whether the kernel takes the paths of Ray's sockets in a folder."""
    return len((folder + SOCKET).encode()) <= MOST_SOCKET_BYTES


def in_folder(spec: LaunchSpec, folder: str) -> LaunchSpec:
    """Returns the launch of Ray's processes with their files in a folder; not in /tmp/ray, which all users share."""
    return msgspec.structs.replace(spec, argv=(*spec.argv, "--temp-dir", folder))


def beside_ray(spec: LaunchSpec) -> LaunchSpec:
    """Returns the launch of the engine beside Ray's head, whose workers have their boxes' variables from Ray."""
    kept = tuple((name, value) for name, value in spec.environment if name not in OF_ONE_BOX)
    return msgspec.structs.replace(spec, environment=kept)
