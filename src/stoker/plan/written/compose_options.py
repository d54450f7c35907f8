"""Turns the keys of a compose service into docker's long options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stoker.plan.written.interpolation import Interpolation

TEXTS = {
    "container_name": "name", "hostname": "hostname", "network_mode": "network", "ipc": "ipc", "pid": "pid",
    "shm_size": "shm-size", "restart": "restart", "user": "user", "working_dir": "workdir", "runtime": "runtime",
    "mem_limit": "memory", "memswap_limit": "memory-swap", "mem_reservation": "memory-reservation",
    "mem_swappiness": "memory-swappiness", "cpus": "cpus", "cpuset": "cpuset-cpus", "cpu_shares": "cpu-shares",
    "platform": "platform", "pull_policy": "pull", "stop_signal": "stop-signal", "stop_grace_period": "stop-timeout",
    "oom_score_adj": "oom-score-adj", "pids_limit": "pids-limit", "userns_mode": "userns", "uts": "uts",
}  # fmt: skip
LISTS = {
    "cap_add": "cap-add", "cap_drop": "cap-drop", "devices": "device", "security_opt": "security-opt", "tmpfs": "tmpfs",
    "group_add": "group-add", "env_file": "env-file", "dns": "dns", "volumes_from": "volumes-from", "expose": "expose",
}  # fmt: skip
PAIRS = {"sysctls": "sysctl", "labels": "label", "extra_hosts": "add-host"}
SWITCHES = {"privileged": "privileged", "init": "init", "stdin_open": "interactive", "tty": "tty", "read_only": "read-only",
            "oom_kill_disable": "oom-kill-disable"}  # fmt: skip
HEALTH = {"interval": "health-interval", "timeout": "health-timeout", "retries": "health-retries",
          "start_period": "health-start-period", "start_interval": "health-start-interval"}  # fmt: skip
TRUE = ("true", "yes", "on")  # also as older files write it


def options_of(service: Mapping[str, object], values: Interpolation) -> dict[str, tuple[str, ...]]:
    """Returns a service's options by docker's long names; the environment and the command are no options."""
    found: dict[str, tuple[str, ...]] = {}
    for name, given in _options(service, values):
        found[name] = (*found.get(name, ()), *given)
    return found


def _options(service: Mapping[str, object], values: Interpolation) -> Iterator[tuple[str, tuple[str, ...]]]:
    for key, name in TEXTS.items():
        if (text := values.text(service.get(key))) is not None:
            yield name, (text,)
    for key, name in (LISTS | PAIRS).items():
        given = _files(service.get(key), values) if key == "env_file" else values.pairs(service.get(key), _sign(key))
        if given:
            yield name, given
    for key, name in SWITCHES.items():
        if (values.text(service.get(key)) or "").lower() in TRUE:
            yield name, ()
    if ports := tuple(_ports(service.get("ports"), values)):
        yield "publish", ports
    if volumes := tuple(_volumes(service.get("volumes"), values)):
        yield "volume", volumes
    if limits := tuple(_ulimits(service.get("ulimits"), values)):
        yield "ulimit", limits
    yield from _networks(service.get("networks"), values)
    yield from _health(_map(service.get("healthcheck")), values)
    yield from _logging(_map(service.get("logging")), values)
    yield from _resources(service, values)


def _sign(key: str) -> str:
    return ":" if key == "extra_hosts" else "="


def _map(value: object) -> Mapping[str, object]:
    return {str(key): item for key, item in value.items()} if isinstance(value, dict) else {}


def _items(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _files(value: object, values: Interpolation) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    paths = [values.text(_map(item).get("path") if isinstance(item, dict) else item) for item in items]
    return tuple(path for path in paths if path is not None)


def _ports(value: object, values: Interpolation) -> Iterator[str]:
    """Returns ports as docker writes them, also from the long form."""
    for item in _items(value):
        table = _map(item)
        parts = [values.text(table.get(key)) for key in ("host_ip", "published", "target")]
        text = ":".join(part for part in parts if part) if table else values.text(item)
        if text:
            yield text


def _volumes(value: object, values: Interpolation) -> Iterator[str]:
    for item in _items(value):
        table = _map(item)
        parts = [values.text(table.get(key)) for key in ("source", "target")]
        read_only = ["ro"] if (values.text(table.get("read_only")) or "").lower() in TRUE else []
        text = ":".join([part for part in parts if part] + read_only) if table else values.text(item)
        if text:
            yield text


def _ulimits(value: object, values: Interpolation) -> Iterator[str]:
    for name, limit in _map(value).items():
        pair = [values.text(_map(limit).get(key)) for key in ("soft", "hard")]
        text = ":".join(part for part in pair if part) if isinstance(limit, dict) else values.text(limit)
        if text:
            yield f"{name}={text}"


def _networks(value: object, values: Interpolation) -> Iterator[tuple[str, tuple[str, ...]]]:
    names = tuple(_map(value)) or values.texts(value)
    if names:
        yield "network", names


def _health(table: Mapping[str, object], values: Interpolation) -> Iterator[tuple[str, tuple[str, ...]]]:
    test = values.texts(table.get("test"))
    if test == ("NONE",) or (values.text(table.get("disable")) or "").lower() in TRUE:
        yield "no-healthcheck", ()
    elif test:
        yield "health-cmd", (" ".join(test[1:] if test[0] in ("CMD", "CMD-SHELL") else test),)
    for key, name in HEALTH.items():
        if (text := values.text(table.get(key))) is not None:
            yield name, (text,)


def _logging(table: Mapping[str, object], values: Interpolation) -> Iterator[tuple[str, tuple[str, ...]]]:
    if (driver := values.text(table.get("driver"))) is not None:
        yield "log-driver", (driver,)
    if options := values.pairs(_map(table.get("options"))):
        yield "log-opt", options


def _resources(service: Mapping[str, object], values: Interpolation) -> Iterator[tuple[str, tuple[str, ...]]]:
    resources = _map(_map(service.get("deploy")).get("resources"))
    for key, name in (("memory", "memory"), ("cpus", "cpus"), ("pids", "pids-limit")):
        if (text := values.text(_map(resources.get("limits")).get(key))) is not None:
            yield name, (text,)
    if (text := values.text(service.get("gpus"))) is not None:
        yield "gpus", (text,)
    for device in [*_items(_map(resources.get("reservations")).get("devices")), *_items(service.get("gpus"))]:
        yield from _device(_map(device), values)


def _device(device: Mapping[str, object], values: Interpolation) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Returns `--gpus` for a reserved device; without a count or names compose takes all of them."""
    kinds = values.texts(device.get("capabilities"))
    if "gpu" not in kinds and values.text(device.get("driver")) != "nvidia":
        return
    names = values.texts(device.get("device_ids"))
    yield "gpus", (f"device={','.join(names)}" if names else values.text(device.get("count")) or "all",)
