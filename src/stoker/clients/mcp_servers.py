"""The servers of the Model Context Protocol that a client starts: what each downloads, and how that is avoided."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

FLAGS_WITH_VALUE = frozenset(
    {"-p", "--package", "--from", "--with", "--python", "-c", "--call", "--spec", "-w", "--index-url"}
)
# A program that looks its package up at each start, the words before that package, and how to install it for good.
DOWNLOADERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "npx": ((), ("npm", "install", "-g")),
    "bunx": ((), ("bun", "add", "-g")),
    "uvx": ((), ("uv", "tool", "install")),
    "uv": (("tool", "run"), ("uv", "tool", "install")),
    "pipx": (("run",), ("pipx", "install")),
    "pnpm": (("dlx",), ("pnpm", "add", "-g")),
    "yarn": (("dlx",), ("npm", "install", "-g")),
    "npm": (("exec",), ("npm", "install", "-g")),
}
NAMED_BY = ("--from", "--spec", "-p", "--package")


class Download(NamedTuple):
    """A package that is looked up at each start: its program, the words that this gets, and how to install it once."""

    package: str
    program: str
    words: tuple[str, ...]
    installs: tuple[str, ...]


def split_command(command: object, args: object) -> tuple[str, ...]:
    """Returns the words that a client starts: the command, split as a shell would where it is one text, and the rest."""
    words = (
        shlex.split(command) if isinstance(command, str) else list(map(str, command)) if isinstance(command, list) else []
    )
    return (*words, *(map(str, args) if isinstance(args, list) else ()))


def check_command(command: object) -> str:
    """Returns what is wrong with a command; empty: nothing."""
    try:
        return "" if split_command(command, []) else "`command` is missing"
    except ValueError as problem:
        return f"`command` cannot be split into words: {problem}"


def find_download(argv: Sequence[str]) -> Download | None:
    """Returns what the words look up at each start; None where they start a program that is there."""
    known = DOWNLOADERS.get(PurePath(argv[0]).name if argv else "")
    if known is None or tuple(argv[1 : 1 + len(known[0])]) != known[0]:
        return None
    words, named = list(argv[1 + len(known[0]) :]), ""
    while words and words[0].startswith("-"):
        name, equals, value = words[0].partition("=")
        if name in NAMED_BY:
            named = value if equals else next(iter(words[1:]), "")
        del words[: 2 if name in FLAGS_WITH_VALUE and not equals else 1]
    package = named or next(iter(words), "")
    if not package:
        return None
    program = words[0] if named and words else without_version(package)
    return Download(package, program, tuple(words[1:]), (*known[1], package))


def without_version(package: str) -> str:
    """Returns a package's name: '@getalby/mcp' for '@getalby/mcp@1.2', 'mcp-server-fetch' for 'mcp-server-fetch==2'."""
    scope, rest = (package[:1], package[1:]) if package.startswith("@") else ("", package)
    return scope + rest.partition("@")[0].partition("==")[0].partition("[")[0]
