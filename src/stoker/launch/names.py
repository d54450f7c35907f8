"""Which names, paths and words may stand in a rendered file; all others are refused, never repaired.

A file of systemd or sudo is read by root. A name that was bent into shape would mean something else than what was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from stoker.config import SERVICE_UNIT
from stoker.errors import Refused
from stoker.plan.secrets import secrets_in

PREFIX = "stoker-"
LONGEST_USER, LONGEST_SERVICE = 32, 63
USER = re.compile(r"[a-z_][a-z0-9_-]*(\.[a-z0-9_-]+)*")
SERVICE = re.compile(r"[a-z0-9][a-z0-9_-]*(\.[a-z0-9_-]+)*")
CONTAINER = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{1,127}")
IMAGE = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._:/-]*(@sha256:[0-9a-f]{64})?")
# No ':' and no ',', which divide mounts; no quotes, '\\', '%', '$' or globs, which systemd reads where no quoting helps.
PATH = re.compile(r"/([\w.@+=~()/-]([\w.@+=~() /-]*[\w.@+=~()/-])?)?")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
UNIT = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*\.(service|target|socket)")
GPUS = re.compile(r"all|[a-z0-9.-]+/[a-z0-9_-]+=[a-zA-Z0-9_.:-]+")
USER_IN_CONTAINER = re.compile(r"[a-z0-9_.-]+(:[a-z0-9_.-]+)?")
# Beside the control characters those that Unicode gives to nobody: systemd ignores a whole line that holds one.
NOBODYS = "".join(chr(plane << 16 | last) for plane in range(17) for last in (0xFFFE, 0xFFFF))
UNWRITABLE = re.compile(r"[\x00\ud800-\udfff]")
CONTROL = re.compile(rf"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufdd0-\ufdef{NOBODYS}]")
VOLUME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]+")


def check_user(name: str) -> str:
    """Returns the name of a user, or raises Refused where it could mean more than one user in a sudoers line."""
    if len(name) <= LONGEST_USER and USER.fullmatch(name):
        return name
    raise Refused(
        f"{name!r} cannot be put into a unit or a sudoers file as a user",
        why=f"in sudoers `%`, `#`, `+` and capitals name groups, ids, netgroups and aliases such as ALL; "
        f"a user here is at most {LONGEST_USER} lower-case letters, digits, '.', '_' and '-'",
        next_step="name the user as `id -un` prints it",
    )


def check_service(name: str) -> str:
    """Returns the name of a service, or raises Refused where it could mean more than one unit."""
    if len(name) <= LONGEST_SERVICE and SERVICE.fullmatch(name):
        return name
    raise Refused(
        f"{name!r} cannot be put into a unit or a sudoers file as a service",
        why=f"a service here is at most {LONGEST_SERVICE} lower-case letters, digits, '_', '-' and single dots: "
        "a wildcard, a comma or a space would allow more than that one service",
        next_step="give the service another name in stoker.toml",
    )


def unit_name(service: str) -> str:
    """Returns the name of a service's unit, without its ending."""
    return PREFIX + check_service(service)


def sudoers_file_name(service: str) -> str:
    """Returns the name of a service's file in /etc/sudoers.d; sudo skips files with a dot in their name, without a word."""
    return unit_name(service).replace(".", "+")  # no service's name has a '+', so two services never share a file


def check_path(path: str, what: str) -> str:
    """Returns a whole path that means the same in every file it may stand in, or raises Refused."""
    if PATH.fullmatch(path):
        return path
    raise Refused(
        f"{what} {path!r} cannot be put into a rendered file",
        why="it has to be a whole path of letters, digits, inner spaces and `.@+=~()/_-`: other signs mean something to "
        "docker, systemd or sudo",
        next_step="rename it, or make a symbolic link with a plain name",
    )


def check_plain_path(path: str, what: str) -> str:
    """Returns a whole path without spaces, for places where a space would end it, or raises Refused."""
    if " " in path:
        raise Refused(f"{what} {path!r} must not hold a space", next_step="make a symbolic link with a plain name")
    return check_path(path, what)


def check_line(text: str, what: str) -> str:
    """Returns text that stays on its line, or raises Refused: a newline would begin a directive of its own."""
    if CONTROL.search(text):
        raise Refused(f"{what} {text!r} holds a newline or another control character", why="a unit is read line by line")
    return text


def check_unit(name: str) -> str:
    """Returns the name of a unit with its ending, or raises Refused."""
    if UNIT.fullmatch(name):
        return name
    raise Refused(f"{name!r} cannot be the name of a unit")


def check_own_unit(name: str) -> str:
    """Returns the name of a unit that a service is, or raises Refused where it is none, or one that asks Stoker itself."""
    if SERVICE_UNIT.fullmatch(name) is None:
        raise Refused(
            f"{name!r} cannot be a service's unit",
            why="letters, digits and `_.@-` may be in its name, and it ends in `.service`",
            next_step="name it as `systemctl list-units --type=service` does",
        )
    if name == f"{PREFIX.rstrip('-')}.service" or name.startswith(PREFIX):
        raise Refused(
            f"{name} cannot be a service's unit", why="it is one of Stoker's own: it asks Stoker to start the service"
        )
    return name


def check_variable(name: str) -> str:
    """Returns the name of an environment variable, or raises Refused."""
    if VARIABLE.fullmatch(name):
        return name
    raise Refused(f"{name!r} cannot be the name of an environment variable", why="letters, digits and '_' may be in one")


def is_volume(host: str) -> bool:
    """Tells whether what is mounted is a volume of the container engine's own, by its name, and no path of the host."""
    return VOLUME.fullmatch(host) is not None


def check_no_secret(owner: str, environment: Iterable[tuple[str, str]], words: Sequence[str]) -> None:
    """Raises Refused where a secret would stand in a command line or a file, which others on the machine can read."""
    shown = secrets_in(words, environment)
    if shown:
        raise Refused(
            f"{owner} would show a secret: {', '.join(shown)}",
            why="everybody on the machine can read command lines (`ps`) and most of these files",
            next_step="take it out of `flags` and `environment`, and put it as a variable into a file of mode 0600: docker, "
            "podman and systemd read such a file (--env-file, EnvironmentFile=)",
        )
