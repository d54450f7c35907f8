"""Programs that ask models: one file each in `known/`, found by listing it; each defines `CLIENT`.

A client's file says where it keeps its settings, reads them into `ClientUse`s, and writes those that this machine's gateway
needs. What is wrong with settings is told by rules (`rules/data/client/`), by the names in `clients/situation.py`. Pure.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import NamedTuple

from stoker.clients import known
from stoker.errors import WrongUse, near_miss
from stoker.records import ClientSetting, ClientUse, McpServer

KEY_VARIABLE = "STOKER_API_KEY"


class Needs(NamedTuple):
    """What a client has to know: the gateway's address with and without `/v1`, the model, and the file with the key."""

    url: str
    key_file: str
    model: str
    context_tokens: int | None

    @property
    def root(self) -> str:
        """The address without `/v1`."""
        return self.url.removesuffix("/v1")


class Rendered(NamedTuple):
    """The text for a client's file, or to run, and the reasons of its settings."""

    place: str
    text: str
    settings: tuple[ClientSetting, ...]


Read = Callable[[str, str], tuple[ClientUse, ...]]
ReadServers = Callable[[str], tuple[McpServer, ...]]


class Client(NamedTuple):
    """What a client's file tells of it; `read` takes a file's text and name and raises StokerError where it is none.

    `places` are where it keeps its settings, below the home folder or its own folder, which `home_variable` moves.
    `offers_tools`: it sends tools by itself. `servers` reads the MCP servers that it starts.
    """

    name: str
    title: str
    read: Read
    render: Callable[[Needs], Rendered]
    places: tuple[str, ...] = ()
    home_variable: str = ""
    offers_tools: bool = False
    servers: ReadServers | None = None


def names() -> list[str]:
    """Returns the names of all clients in `known/`."""
    return sorted(found.name.replace("_", "-") for found in pkgutil.iter_modules(known.__path__))


def find(name: str) -> Client:
    """Returns one client; raises WrongUse with the near miss, or with the names that exist."""
    if name not in names():
        raise WrongUse(
            f"there is no client called `{name}`",
            why=f"known are: {', '.join(names())}",
            next_step=near_miss(name, names(), "`stoker clients config openai` suits most others"),
        )
    found: Client = importlib.import_module(f"{known.__name__}.{name.replace('-', '_')}").CLIENT
    return found
