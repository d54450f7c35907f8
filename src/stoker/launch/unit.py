"""A program as a systemd unit, with the reason beside each directive that is not obvious."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from stoker.errors import Refused
from stoker.launch.names import (
    check_line,
    check_no_secret,
    check_path,
    check_plain_path,
    check_service,
    check_unit,
    check_user,
    check_variable,
)
from stoker.records import UnitLaunch

HARDENING = """\
# As far as an engine allows. It compiles kernels while it runs, so MemoryDenyWriteExecute would end it; it talks to
# /dev/nvidia*, so PrivateDevices would. nvidia-modprobe is setuid and can do nothing here: the device files have to exist
# beforehand, as nvidia-persistenced makes them. Not ProtectSystem=strict: caches lie in the user's home, /tmp, /dev/shm.
NoNewPrivileges=yes
ProtectSystem=full
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectControlGroups=yes
RestrictSUIDSGID=yes"""
HARDENING_WITH_SUDO = """\
# As far as sudo allows: it starts units of other services, by lines of sudoers. Not NoNewPrivileges, nor what implies it for
# a user that is not root: ProtectKernelTunables, ProtectKernelModules, RestrictSUIDSGID.
ProtectSystem=full
ProtectControlGroups=yes"""
MEMORY = """\
# No MemoryMax: on a machine whose GPU shares its memory, CUDA's allocations are not charged to a control group, so it would
# bound the wrong part. LimitMEMLOCK, because locked models (--mlock) and pinned buffers outgrow the default of 8 MiB.
LimitMEMLOCK=infinity"""
WIDTH = 120
STAYS = "# Stays active after it has run, so that a stop runs ExecStop.\nRemainAfterExit=yes"
WINDOW = "# A window longer than all the tries take, loading included, or they would never run out."
PAUSE = "# A GB10 takes up to two minutes to give memory back; an engine started before dies at its first request."
FINAL = "# These exit codes say that another try would end as this one did.\nRestartPreventExitStatus"
OWN_LIMITS = "# The program ends its waits itself, each by the limit in its configuration."
SCORE = """\
# The kernel judges by resident memory, where CUDA's part does not count, and might end the login instead.
OOMScoreAdjust"""
CLIENT = """\
# It only talks to another program, and that one runs the engines.
NoNewPrivileges=yes
ProtectSystem=full"""
CLIENTS = ("docker", "podman")
CONTAINER_CLIENT = """\
# Only the container engine's client: neither limits, nor a score, nor hardening of its own reach the container.
NoNewPrivileges=yes
ProtectSystem=full"""
KEEPS_CHILDREN = """\
# Only the program itself is ended: engines outlive its crash, and the next one takes them back. Nor does an engine that the
# kernel ends for want of memory end the program.
KillMode=process
OOMPolicy=continue"""
ENDS_CHILDREN = """\
# SIGTERM for the main process alone: an engine ends its workers itself, and hangs where they get the signal at once.
KillMode=mixed"""


def render_unit(launch: UnitLaunch, reasons: Sequence[str] = ()) -> str:
    """Returns the text of a service unit; the reasons stand above its command."""
    check_service(launch.name)
    check_no_secret(launch.name, launch.environment, (*launch.argv, *launch.stop_argv))
    sections = (_unit(launch), _service(launch, reasons), ["[Install]", "WantedBy=multi-user.target"])
    return "# Written by Stoker.\n" + "\n\n".join("\n".join(lines) for lines in sections) + "\n"


def exec_words(words: Iterable[str]) -> str:
    """Returns words so that systemd's ExecStart= splits them into exactly these again."""
    return " ".join(_quoted(word.replace("%", "%%").replace("$", "$$")) for word in words)


def _unit(launch: UnitLaunch) -> list[str]:
    # Not Requires: where that one crashes and is started again, systemd would stop and start this one too.
    first = " ".join(map(check_unit, launch.wants))
    lines = ["[Unit]", f"Description={_plain(launch.description)}"]
    lines += [f"Wants={first}", f"After={first}"] if first else []
    # Assert, since a Condition that does not hold skips the start and calls that a success.
    lines += [f"AssertPathExists={_specified(check_path(path, 'the condition'))}" for path in launch.conditions]
    if launch.restart_pause_s is not None:
        lines += [WINDOW, f"StartLimitIntervalSec={launch.restart_window_s}", f"StartLimitBurst={launch.restart_tries}"]
    return lines


def _service(launch: UnitLaunch, reasons: Sequence[str]) -> list[str]:
    lines = ["[Service]", f"Type={launch.kind}", *([STAYS] if launch.kind == "oneshot" else [])]
    lines.append(f"User={check_user(launch.user)}")
    lines += [f"Group={check_user(launch.group)}"] if launch.group else []
    lines += _surroundings(launch)
    lines += [f"# {check_line(reason, 'a reason')}" for reason in reasons]
    lines.append(_command("ExecStart", launch.argv))
    lines += [_command("ExecStop", launch.stop_argv)] if launch.stop_argv else []
    lines += [*_restart(launch), *_limits(launch)]
    return [*lines, CLIENT] if launch.kind == "oneshot" else [*lines, *_engine_rules(launch)]


def _surroundings(launch: UnitLaunch) -> list[str]:
    lines = []
    if launch.working_directory:
        lines.append(f"WorkingDirectory={_specified(check_path(launch.working_directory, 'the working directory'))}")
    for name, value in launch.environment:
        # Not exec_words: a dollar sign means nothing in Environment=, so doubling it would leave two.
        pair = f"{check_variable(name)}={check_line(value, name)}"
        lines.append(f"Environment={_quoted(_specified(pair))}")
    if launch.env_file:
        lines.append(f"EnvironmentFile={_specified(check_plain_path(launch.env_file, 'the environment file'))}")
    return lines


def _restart(launch: UnitLaunch) -> list[str]:
    if launch.restart_pause_s is None:
        return []
    pause = [*([] if launch.keeps_children else [PAUSE]), f"RestartSec={launch.restart_pause_s}"]
    codes = " ".join(map(str, launch.final_exit_codes))
    return ["Restart=on-failure", *pause, *([f"{FINAL}={codes}"] if codes else [])]


def _limits(launch: UnitLaunch) -> list[str]:
    start = [OWN_LIMITS, "TimeoutStartSec=infinity"] if launch.start_timeout_s is None else []
    start += [] if launch.start_timeout_s is None else [f"TimeoutStartSec={launch.start_timeout_s}"]
    return [*start, f"TimeoutStopSec={launch.stop_timeout_s}"]


def _engine_rules(launch: UnitLaunch) -> list[str]:
    if PurePosixPath(launch.argv[0]).name in CLIENTS:
        return [ENDS_CHILDREN, CONTAINER_CLIENT]
    children = KEEPS_CHILDREN if launch.keeps_children else ENDS_CHILDREN
    score = [] if launch.oom_score_adjust is None else [f"{SCORE}={launch.oom_score_adjust}"]
    return [children, *score, MEMORY, HARDENING_WITH_SUDO if launch.uses_sudo else HARDENING]


def _command(key: str, argv: Sequence[str]) -> str:
    """Returns a command; a long one has a line for each option, which the backslashes at their ends join again."""
    if not argv or not argv[0].startswith("/") or "$" in argv[0]:
        raise Refused(
            f"{key} needs a program with its whole path, not {' '.join(argv[:1])!r}",
            why="systemd looks programs up in its own PATH, reads `@-:+!` before a name as orders, and keeps `$` in it",
        )
    one_line = f"{key}={exec_words(argv)}"
    if len(one_line) <= WIDTH:
        return one_line
    options: list[list[str]] = [[argv[0]]]
    for word in argv[1:]:
        if word.startswith("-"):
            options.append([])
        options[-1].append(word)
    return f"{key}=" + " \\\n    ".join(map(exec_words, options))


def _quoted(text: str) -> str:
    """Returns text in double quotes where systemd would otherwise split it, or read a sign of it as an order."""
    check_line(text, "the word")
    if text and text[0] not in "#;" and not any(letter in " \t\"'\\" or ord(letter) > 126 for letter in text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _specified(text: str) -> str:
    return text.replace("%", "%%")


def _plain(text: str) -> str:
    if text.endswith("\\"):
        raise Refused(f"the description {text!r} ends with a backslash", why="systemd would join the next line to it")
    return _specified(check_line(text, "the description"))
