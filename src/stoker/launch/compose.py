"""Containers as a file for `docker compose`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from stoker.errors import Refused
from stoker.launch.container import check_container, published, restart_policy
from stoker.launch.names import is_volume
from stoker.launch.reasons import reasons_of
from stoker.records import ContainerLaunch


class _Word(str):
    """Text that is always written in quotes.

    YAML has two versions that disagree on what is a number: PyYAML would leave 1e3 and 0o17 bare, and compose reads numbers.
    """

    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    """Writes `_Word` in quotes, and every list indented below its key."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


_Dumper.add_representer(_Word, lambda dumper, word: dumper.represent_scalar("tag:yaml.org,2002:str", str(word), style='"'))


# The keys of a service and the options of a launch that they say.
KEYS = {
    "volumes": "mounts", "ports": "publish", "ipc": "ipc", "shm_size": "shm_size", "ulimits": "ulimits", "deploy": "gpus",
    "devices": "gpus",
}  # fmt: skip
KEY = re.compile(r"  (\w+):")


def render_compose(launches: Sequence[ContainerLaunch]) -> str:
    """Returns the text of a compose file with one service for each launch, in their order."""
    names = [launch.name for launch in launches]
    if len(set(names)) < len(names):
        raise Refused("two containers have one name", why=f"the names are {', '.join(names)}")
    for launch in launches:
        check_container(launch)
    services = "".join(_with_reasons(launch, _dump({launch.name: _service(launch)})) for launch in launches)
    volumes = sorted({mount.host for launch in launches for mount in launch.mounts if is_volume(mount.host)})
    # By its name, or compose would put the project's before it and take another volume than docker and podman do.
    named = _dump({"volumes": {volume: {"name": _Word(volume)} for volume in volumes}}) if volumes else ""
    return f"# Written by Stoker.\nservices:\n{services}{named}"


def _dump(tree: Mapping[str, Any]) -> str:
    text: str = yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=float("inf"))
    return text


def _with_reasons(launch: ContainerLaunch, text: str) -> str:
    """Returns a service's lines, indented, each option with its reason above it; all text in them is on one line."""
    reasons = reasons_of(launch)
    lines: list[str] = []
    for line in text.rstrip("\n").split("\n"):
        found = KEY.match(line)
        reason = reasons.get(KEYS.get(found[1], "")) if found else None
        lines += [f"    # {reason}"] if reason else []
        lines.append(f"  {line}")
    return "\n".join(lines) + "\n"


def _word(text: str) -> _Word:
    return _Word(text.replace("$", "$$"))  # compose puts variables in everywhere, also into values in single quotes


def _service(launch: ContainerLaunch) -> dict[str, Any]:
    """Returns one service; what was not asked for is left out."""
    restart = restart_policy(launch)
    whole: dict[str, Any] = {
        "image": _word(launch.image),
        "container_name": _word(launch.name),
        "entrypoint": [_word(launch.entrypoint)] if launch.entrypoint is not None else None,
        "command": [_word(word) for word in launch.words],
        "environment": {name: _word(value) for name, value in launch.environment},
        "env_file": [_word(launch.env_file)] if launch.env_file else None,
        "volumes": [_mount(mount.host, mount.inside, mount.read_only) for mount in launch.mounts],
        "network_mode": launch.network,
        "ports": [_word(published(port)) for port in launch.publish],
        "ipc": launch.ipc,
        "shm_size": launch.shm_size_bytes,
        "ulimits": dict(launch.ulimits),
        "user": _word(launch.user) if launch.user else None,
        "read_only": launch.read_only or None,
        "labels": {name: _word(value) for name, value in launch.labels},
        "restart": _word(restart) if restart else None,
        "stop_grace_period": None if launch.stop_timeout_s is None else f"{launch.stop_timeout_s}s",
        **_gpus(launch.gpus),
    }
    return {key: value for key, value in whole.items() if value not in (None, [], {})}


def _mount(host: str, inside: str, read_only: bool) -> dict[str, Any]:
    if is_volume(host):
        return {"type": "volume", "source": _word(host), "target": _word(inside), "read_only": read_only}
    # Without create_host_path: false a mistyped path becomes an empty folder, owned by root.
    return {
        "type": "bind", "source": _word(host), "target": _word(inside), "read_only": read_only,
        "bind": {"create_host_path": False},
    }  # fmt: skip


def _gpus(gpus: str | None) -> dict[str, Any]:
    if not gpus:
        return {}
    if gpus != "all":
        return {"devices": [_word(gpus)]}
    every = {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}
    return {"deploy": {"resources": {"reservations": {"devices": [every]}}}}
