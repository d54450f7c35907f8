"""Programs that ask models: what their own files say, what they should say, and what their helpers cost at each start."""

from __future__ import annotations

from typing import Literal

from stoker.records.base import Record
from stoker.records.rule import Finding, Scalar

McpTransport = Literal["stdio", "http", "streamable-http"]


class Written(Record, frozen=True):
    """A value in somebody's file, with its path there (`models.0.apiBase`) and its line; 0 where the line is unknown."""

    value: str
    path: str
    line: int = 0


class ClientFact(Record, frozen=True):
    """One thing that a client's file says, by the rules' name for it; `shown` is the sentence that a finding quotes."""

    name: str
    value: Scalar | None
    line: int = 0
    shown: str = ""


class ClientUse(Record, frozen=True):
    """What a client's file says in one place: which server it asks for which model with which key, or something else."""

    base_url: Written | None = None
    key: Written | None = None
    model: Written | None = None
    facts: tuple[ClientFact, ...] = ()


class McpServer(Record, frozen=True):
    """A server of the Model Context Protocol that a client starts; `argv` is empty where it is only asked over HTTP.

    `first_line` and `last_line` are its part of the file. `package` is what it downloads at each start, and `installs`
    the command that installs that once; both empty where it downloads nothing.
    """

    name: str
    transport: McpTransport
    argv: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    folder: str | None = None
    startup_limit_s: float = 10.0
    disabled: bool = False
    place: int = 0
    first_line: int = 0
    last_line: int = 0
    package: str = ""
    installs: tuple[str, ...] = ()


class McpStart(Record, frozen=True):
    """How a server started when it was tried: None for what it did not do; `why` is what stood in the way."""

    server: str
    ready_s: float | None
    tools: int | None
    why: str = ""


class ServedModel(Record, frozen=True):
    """A model of this machine's gateway as its clients need to know it; `context_tokens` None is unknown."""

    name: str
    service: str
    context_tokens: int | None = None
    is_ready: bool = False


class GatewayHere(Record, frozen=True):
    """This machine's gateway; `models` None: no daemon answers, so nobody knows which there are."""

    url: str
    key_file: str
    models: tuple[ServedModel, ...] | None = None


class ClientSetting(Record, frozen=True):
    """One setting that a client needs, and why."""

    name: str
    value: str
    because: str


class ClientConfig(Record, frozen=True):
    """What makes a client ask this machine's gateway: a text for its file (or to run), and the reason of each setting."""

    client: str
    title: str
    place: str
    text: str
    settings: tuple[ClientSetting, ...]
    key_file: str
    key: str | None = None


class ClientReport(Record, frozen=True):
    """What was found in a client's file; `mended` and `backup` are the files written, if any were."""

    client: str
    file: str
    findings: tuple[Finding, ...]
    starts: tuple[McpStart, ...] = ()
    unknown: tuple[str, ...] = ()
    mended: str | None = None
    backup: str | None = None
