"""A container as a Podman quadlet: a `.container` file, from which Podman makes a unit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from stoker.errors import Refused
from stoker.launch.container import cdi_name, check_container, full_image, published
from stoker.launch.names import check_line
from stoker.launch.reasons import reasons_of
from stoker.launch.unit import exec_words
from stoker.records import ContainerLaunch

# Written for Podman 4.7 and newer, whose keys these are; `Entrypoint=` came later, so that goes through PodmanArgs.
RESTARTS = {"on-failure": "on-failure", "always": "always", "unless-stopped": "always"}
RESTART_PAUSE_S, RESTART_WINDOW_S = 120, 3600
# The keys of a quadlet and the options of a launch that they say.
KEYS = {"Volume": "mounts", "PublishPort": "publish", "ShmSize": "shm_size", "Ulimit": "ulimits", "AddDevice": "gpus"}


def render_quadlet(launch: ContainerLaunch) -> str:
    """Returns the text of a `.container` file.

    Podman splits these lines as systemd does and writes the words into an ExecStart=, which systemd reads again: `%` and `$`
    are doubled once, for systemd, since Podman leaves them alone.
    """
    check_container(launch)
    sections = {
        "Unit": _unit(launch),
        "Container": _container(launch),
        "Service": _service(launch),
        "Install": [("WantedBy", "multi-user.target default.target")],
    }
    reasons = reasons_of(launch)
    blocks = ["\n".join([f"[{name}]", *_lines(lines, reasons)]) for name, lines in sections.items()]
    return (
        "# Written by Stoker. Place: /etc/containers/systemd/, then `systemctl daemon-reload`.\n"
        + "\n\n".join(blocks)
        + "\n"
    )


def _lines(lines: Iterable[tuple[str, str]], reasons: Mapping[str, str]) -> Iterator[str]:
    """Yields the lines of a section, the first of each key below the reason for it."""
    left = {key: reasons[option] for key, option in KEYS.items() if option in reasons}
    for key, value in lines:
        if reason := left.pop(key, None):
            yield f"# {reason}"
        yield f"{key}={check_line(value, key)}"


def _unit(launch: ContainerLaunch) -> list[tuple[str, str]]:
    lines = [("Description", f"{launch.name}, an engine in a container")]
    if launch.at_exit in RESTARTS:
        lines += [("StartLimitIntervalSec", str(RESTART_WINDOW_S)), ("StartLimitBurst", str(launch.restart_tries))]
    return lines


def _container(launch: ContainerLaunch) -> list[tuple[str, str]]:
    lines = [("ContainerName", launch.name), ("Image", full_image(launch.image)), *_arguments(launch)]
    if launch.words:
        lines.append(("Exec", _words(launch.words)))
    lines += [("Environment", _words([f"{name}={value}"])) for name, value in launch.environment]
    if launch.env_file:
        lines.append(("EnvironmentFile", launch.env_file))
    lines += [("Volume", f"{m.host}:{m.inside}" + (":ro" if m.read_only else "")) for m in launch.mounts]
    lines += [("PublishPort", published(port)) for port in launch.publish]
    lines += [("Network", launch.network)] if launch.network else []
    lines += [("AddDevice", cdi_name(launch.gpus))] if launch.gpus else []
    lines += [("ShmSize", str(launch.shm_size_bytes))] if launch.shm_size_bytes is not None else []
    lines += [("Ulimit", f"{name}={value}") for name, value in launch.ulimits]
    lines += [("User", launch.user)] if launch.user else []
    lines += [("ReadOnly", "true")] if launch.read_only else []
    return lines + [("Label", _words([f"{name}={value}"])) for name, value in launch.labels]


def _arguments(launch: ContainerLaunch) -> list[tuple[str, str]]:
    words = [f"--entrypoint={launch.entrypoint}"] if launch.entrypoint is not None else []
    words += [f"--ipc={launch.ipc}"] if launch.ipc else []
    words += [f"--stop-timeout={launch.stop_timeout_s}"] if launch.stop_timeout_s is not None else []
    return [("PodmanArgs", _words(words))] if words else []


def _words(words: list[str] | tuple[str, ...]) -> str:
    if "" in words or ";" in words:
        # Seen with Podman 5.4.2: an empty word ends the list; a quoted `;` comes out bare, and ends systemd's command.
        raise Refused("a quadlet cannot hold an empty word or a lone `;`", next_step="use compose or `podman run` for it")
    return exec_words(words)


def _service(launch: ContainerLaunch) -> list[tuple[str, str]]:
    # The engine loads for minutes, and an image may have to come first: systemd's 90 s would end both.
    lines = [("TimeoutStartSec", "infinity")]
    if launch.stop_timeout_s is not None:
        lines.append(("TimeoutStopSec", str(launch.stop_timeout_s + 10)))
    if launch.at_exit in RESTARTS:
        # A GB10 takes up to two minutes to give memory back; an engine started before dies at its first request.
        lines += [("Restart", RESTARTS[launch.at_exit]), ("RestartSec", str(RESTART_PAUSE_S))]
    return lines
