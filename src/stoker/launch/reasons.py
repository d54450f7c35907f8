"""Why a container gets the options that nobody asked for: comments for the files that can hold some."""

from __future__ import annotations

from stoker.records import ContainerLaunch

OPTIONS = {
    "mounts": "--mount", "publish": "--publish", "ipc": "--ipc", "shm_size": "--shm-size", "ulimits": "--ulimit",
    "gpus": "--gpus",
}  # fmt: skip
REASONS = {
    "mounts": "The models read-only: no engine has to change one.",
    "publish": "On loopback, where nobody else on the network reaches it: inside, the engine listens on every address.",
    "ipc": "The host's shared memory, which all its programs then share with the container.",
    "shm_size": "The engine's processes talk through shared memory, of which a container gets 64 MiB unless told otherwise.",
    "ulimits": "Pinned buffers outgrow the default of 8 MiB of locked memory, and sockets and shards the one of 1024 files.",
    "gpus": "Without it the container sees no GPU.",
}


def reasons_of(launch: ContainerLaunch) -> dict[str, str]:
    """Returns the reasons for those options that a launch has, by the option."""
    has = {
        "mounts": any(mount.read_only for mount in launch.mounts),
        "publish": any(port.address in ("127.0.0.1", "::1") for port in launch.publish),
        "ipc": launch.ipc is not None,
        "shm_size": launch.shm_size_bytes is not None,
        "ulimits": bool(launch.ulimits),
        "gpus": launch.gpus is not None,
    }
    return {name: reason for name, reason in REASONS.items() if has[name]}


def option_reasons(launch: ContainerLaunch) -> tuple[str, ...]:
    """Returns a sentence for each of those options, which begins with it, for files that hold a whole command."""
    return tuple(f"{OPTIONS[name]}: {reason}" for name, reason in reasons_of(launch).items())
