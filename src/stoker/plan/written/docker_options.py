"""The options of `docker run` and podman: which there are, which take a value, and how they are read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from stoker.engines import engine_of_image


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Read from `docker run --help` of 28.2 and podman-run(1) of 5.x; options for Windows containers are left out.
SWITCHES = _names(
    "detach disable-content-trust env-host help http-proxy init interactive no-healthcheck no-hostname no-hosts "
    "oom-kill-disable passwd privileged publish-all quiet read-only read-only-tmpfs replace rm rmi rootfs sig-proxy "
    "tls-verify tty unsetenv-all use-api-socket"
)
LISTS = _names(
    "add-host annotation attach cap-add cap-drop device device-cgroup-rule dns dns-option dns-search env env-file expose "
    "group-add label label-file link log-opt mount network-alias publish secret security-opt storage-opt sysctl tmpfs "
    "ulimit volume volumes-from"
)
SINGLES = _names(
    "arch authfile blkio-weight blkio-weight-device cgroup-conf cgroup-parent cgroupns cgroups chrootdirs cidfile "
    "conmon-pidfile cpu-period cpu-quota cpu-rt-period cpu-rt-runtime cpu-shares cpus cpuset-cpus cpuset-mems "
    "decryption-key detach-keys device-read-bps device-read-iops device-write-bps device-write-iops domainname entrypoint "
    "env-merge gidmap gpus health-cmd health-interval health-on-failure health-retries health-start-interval "
    "health-start-period health-startup-cmd health-timeout hostname hostuser image-volume init-path ip ip6 ipc isolation "
    "kernel-memory link-local-ip log-driver mac-address memory memory-reservation memory-swap memory-swappiness name "
    "network oom-score-adj os override-arch personality pid pidfile pids-limit platform pod pod-id-file preserve-fds "
    "preserve-fd pull rdt-class requires restart retry retry-delay runtime sdnotify seccomp-policy shm-size "
    "shm-size-systemd stop-signal stop-timeout subgidname subuidname systemd timeout timezone tz uidmap umask unsetenv "
    "user userns uts variant volume-driver workdir"
)
SHORT = {
    "a": "attach", "c": "cpu-shares", "d": "detach", "e": "env", "h": "hostname", "i": "interactive", "l": "label",
    "m": "memory", "p": "publish", "P": "publish-all", "q": "quiet", "t": "tty", "u": "user", "v": "volume",
    "w": "workdir",
}  # fmt: skip
ALIASES = {"net": "network", "net-alias": "network-alias", "dns-opt": "dns-option"}
# What stands where an option or the image is due: an image's variable, or a list of options that nobody resolved.
UNRESOLVED = re.compile(r"\$\{?(\w+|[@*])(\[[@*]\])?\}?")
SUBSTITUTION = re.compile(r"\$\(.*\)|`.*`", re.DOTALL)
MOST_OPTIONS = 200  # words among which the image is looked for
OPTION_NAMES = re.compile(r"opt|arg|flag|gpu|env|vol|mount|net|port|extra|param|[@*]", re.IGNORECASE)


class Options(NamedTuple):
    """The options by their long names, the words after them, what could not be understood, and what hides options."""

    options: dict[str, tuple[str, ...]]
    rest: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def read_options(words: Sequence[str], more_switches: frozenset[str] = frozenset()) -> Options:
    """Reads the options at the beginning of `words`; the rest begins with the image."""
    reader = _Reader(list(words), more_switches)
    reader.read()
    found = {name: tuple(values) for name, values in reader.found.items()}
    return Options(found, tuple(reader.words), tuple(reader.unknown), tuple(reader.unread))


class _Reader:
    """Takes options off the front of a list of words."""

    def __init__(self, words: list[str], more_switches: frozenset[str]) -> None:
        self.words = words
        self.switches = SWITCHES | more_switches
        self.found: dict[str, list[str]] = {}
        self.unknown: list[str] = []
        self.unread: list[str] = []

    def read(self) -> None:
        """Reads up to the first word that is no option."""
        place = 0
        while place < len(self.words):
            word = self.words[place]
            if word == "--":
                place += 1
                break
            if self._is_unresolved_list(word):
                self.unknown.append(f"`{word}` stands for options that are not known")
            elif SUBSTITUTION.fullmatch(word) and self._is_before_image(place):
                self.unread.append(f"the options that `{word}` gives are known only when it runs")
            elif word.startswith("--"):
                place += self._long(word, self._following(place))
            elif word.startswith("-") and len(word) > 1:
                place += self._short(word, self._following(place))
            else:
                break
            place += 1
        self.words = self.words[place:]

    def _following(self, place: int) -> str | None:
        return self.words[place + 1] if place + 1 < len(self.words) else None

    @staticmethod
    def _is_unresolved_list(word: str) -> bool:
        found = UNRESOLVED.fullmatch(word)
        is_list = found is not None and (found[2] or OPTION_NAMES.search(found[1]))
        return bool(is_list) and "IMAGE" not in word.upper()

    def _is_before_image(self, place: int) -> bool:
        """Tells whether an engine's image is still to come: what stands here then is no image, but options."""
        following = self.words[place + 1 : place + MOST_OPTIONS]
        return any(not word.startswith("-") and engine_of_image(word) for word in following)

    def _long(self, word: str, following: str | None) -> int:
        """Takes `--name`, `--name=value` or `--name value`; returns how many more words it took."""
        given, sign, value = word[2:].partition("=")
        name = ALIASES.get(given, given)
        if name in self.switches:
            self._switch(name, value if sign else "true")
            return 0
        if sign:
            self._add(name, value)
            return 0
        if name not in LISTS and name not in SINGLES:
            self.unknown.append(f"`--{name}` is no option of `docker run` that is known here")
            if following is None or following.startswith("-"):
                self.found.setdefault(name, [])
                return 0
        self._add(name, following or "")
        return 1

    def _short(self, word: str, following: str | None) -> int:
        """Takes `-d`, `-dit`, `-v x`, `-vx` or `-p=8000:8000`; returns how many more words it took."""
        for place, letter in enumerate(word[1:], start=2):
            name = SHORT.get(letter)
            if name is None:
                self.unknown.append(f"`-{letter}` is no option of `docker run`")
            elif name in self.switches:
                self._switch(name, "true")
            elif place < len(word):
                self._add(name, word[place:].removeprefix("="))
                return 0
            else:
                self._add(name, following or "")
                return 1
        return 0

    def _switch(self, name: str, value: str) -> None:
        if value.lower() in ("false", "0", "f"):
            self.found.pop(name, None)
        else:
            self.found.setdefault(name, [])

    def _add(self, name: str, value: str) -> None:
        if name in LISTS:
            self.found.setdefault(name, []).append(value)
        else:
            self.found[name] = [value]  # as docker does: the last one counts
