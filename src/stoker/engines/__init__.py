"""The engines Stoker can start: one file each, found by listing this folder; each defines `ENGINE`."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Protocol

from stoker.errors import WrongUse
from stoker.records import LaunchSpec, Plan


class Engine(Protocol):
    """What every engine file tells about its engine; nothing here touches the machine."""

    name: str
    package: str | None
    metrics: dict[str, str]

    def render(self, plan: Plan, port: int) -> LaunchSpec:
        """Returns the program to run for a plan, listening on a port of the loopback interface."""

    def version_argv(self, server: str | None) -> tuple[str, ...] | None:
        """Returns the words that print the engine's version, or None where the package's metadata tells it."""

    def parse_version(self, printed: str) -> str | None:
        """Returns the version in what those words printed."""

    def explain(self, lines: list[str]) -> str | None:
        """Returns what an engine's last lines say of its death, or None where no sign is known."""


def names() -> list[str]:
    """Returns the names of all engines in this folder."""
    return sorted(found.name for found in pkgutil.iter_modules(__path__))


def find(name: str) -> Engine:
    """Returns one engine; raises WrongUse with the names that exist."""
    if name not in names():
        raise WrongUse(f"there is no engine called `{name}`", next_step=f"choose one of: {', '.join(names())}")
    engine: Engine = importlib.import_module(f"{__name__}.{name}").ENGINE
    return engine
