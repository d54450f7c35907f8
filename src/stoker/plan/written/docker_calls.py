"""Takes a call of docker, podman or compose apart: what it is asked to do, and where the words of that begin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from stoker.plan.written.prefixes import program_name

RUNNERS = frozenset({"docker", "podman", "nerdctl"})
COMPOSE = frozenset({"docker-compose", "podman-compose"})
VALUED_BEFORE = frozenset(
    {"-c", "--context", "-H", "--host", "--config", "-l", "--log-level", "--root", "--connection", "-n"}
)
COMPOSE_VALUED = frozenset({"-f", "--file", "-p", "--project-name", "--profile", "--env-file", "--project-directory",
                            "--ansi", "--progress", "--parallel"})  # fmt: skip
STOP_VALUED = frozenset({"-t", "--time", "--timeout", "-s", "--signal"})
MOST_WORDS_BEFORE = 24


class DockerCall(NamedTuple):
    """`docker container VERB ...`: the verb, the words behind it, where these begin, and whether compose is asked."""

    verb: str
    words: tuple[str, ...]
    start: int
    is_compose: bool

    def names(self) -> list[str]:
        """Returns what the verb is done to, for those verbs that take names alone: `stop`, `kill`, `rm`, `restart`."""
        place, found = 0, []
        while place < len(self.words):
            if self.words[place].startswith("-"):
                place += 2 if self.words[place] in STOP_VALUED else 1
            else:
                found.append(self.words[place])
                place += 1
        return found


def find_call(words: Sequence[str]) -> DockerCall | None:
    """Returns the call that these words are; None where they are none."""
    name = program_name(words[0]) if words else ""
    if name not in RUNNERS and name not in COMPOSE:
        return None
    place, is_compose = 1, name in COMPOSE
    while place < min(len(words), MOST_WORDS_BEFORE):
        word = words[place]
        if word.startswith("-"):
            place += 2 if word in (COMPOSE_VALUED if is_compose else VALUED_BEFORE) else 1
        elif word == "compose" and not is_compose:
            is_compose, place = True, place + 1
        elif word == "container" and not is_compose:
            place += 1
        else:
            return DockerCall(word, tuple(words[place + 1 :]), place + 1, is_compose)
    return None
