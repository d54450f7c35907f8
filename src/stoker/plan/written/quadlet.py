"""Turns the keys of a podman quadlet's `[Container]` into docker's long options."""

from __future__ import annotations

from collections.abc import Mapping

from stoker.plan.written.docker_options import read_options
from stoker.plan.written.unit_file import split_words

# podman-systemd.unit(5) of 5.x. Keys that say nothing of the container itself (AutoUpdate, GlobalArgs) are left out.
TEXTS = {
    "ContainerName": "name", "HostName": "hostname", "IP": "ip", "IP6": "ip6", "LogDriver": "log-driver",
    "Memory": "memory", "PidsLimit": "pids-limit", "Pod": "pod", "Pull": "pull", "Rootfs": "rootfs",
    "ShmSize": "shm-size", "StopSignal": "stop-signal", "StopTimeout": "stop-timeout", "Timezone": "tz", "User": "user",
    "UserNS": "userns", "WorkingDir": "workdir", "HealthCmd": "health-cmd", "HealthInterval": "health-interval",
    "HealthRetries": "health-retries", "HealthStartPeriod": "health-start-period", "HealthTimeout": "health-timeout",
    "HealthOnFailure": "health-on-failure", "CgroupsMode": "cgroups", "SeccompProfile": "seccomp-policy",
}  # fmt: skip
LISTS = {
    "AddCapability": "cap-add", "AddDevice": "device", "AddHost": "add-host", "Annotation": "annotation", "DNS": "dns",
    "DropCapability": "cap-drop", "EnvironmentFile": "env-file", "ExposeHostPort": "expose", "GroupAdd": "group-add",
    "Label": "label", "LogOpt": "log-opt", "Mount": "mount", "Network": "network", "NetworkAlias": "network-alias",
    "PublishPort": "publish", "Secret": "secret", "Sysctl": "sysctl", "Tmpfs": "tmpfs", "Ulimit": "ulimit",
    "Volume": "volume",
}  # fmt: skip
SWITCHES = {"EnvironmentHost": "env-host", "NoNewPrivileges": "", "ReadOnly": "read-only", "RunInit": "init"}
TRUE = ("true", "yes", "on", "1")
MANY_WORDS = ("AddCapability", "DropCapability", "Sysctl", "Annotation", "Label")


def options_of(keys: Mapping[str, tuple[str, ...]]) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Returns the options that the keys stand for, and what in `PodmanArgs` could not be understood."""
    given = read_options([word for value in keys.get("PodmanArgs", ()) for word in split_words(value)])
    found = {name: keys[key][-1:] for key, name in TEXTS.items() if key in keys}
    for key, name in LISTS.items():
        if key in keys:
            found[name] = _values(key, keys[key])
    found |= {name: () for key, name in SWITCHES.items() if name and keys.get(key, ("",))[-1].lower() in TRUE}
    if keys.get("NoNewPrivileges", ("",))[-1].lower() in TRUE:
        found["security-opt"] = ("no-new-privileges",)
    for name, values in given.options.items():
        found[name] = (*found.get(name, ()), *values)
    left = tuple(f"`{word}` in PodmanArgs is no option" for word in given.rest)
    return found, (*given.unknown, *left)


def _values(key: str, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for value in values for word in split_words(value)) if key in MANY_WORDS else values
