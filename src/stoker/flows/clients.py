"""Tells clients what they need, and holds what they were told against the gateway, its models and the rules."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from stoker.clients import Client, Needs, find, names
from stoker.clients.judge import judge
from stoker.clients.mcp_entries import ENTRIES, render_entry
from stoker.clients.situation import facts_of, find_model, local_ports
from stoker.config import Paths, find_paths
from stoker.errors import Refused, StokerError, WrongUse, model_hint
from stoker.flows.client_files import find_file, is_open, is_trusted
from stoker.flows.client_mending import Mended, mend_servers
from stoker.flows.gateway_here import engine_facts, read_gateway, read_ports
from stoker.flows.mcp_starts import download_facts, start_facts, time_starts
from stoker.flows.reading import read_text
from stoker.records import ClientConfig, ClientFact, ClientReport, ClientUse, GatewayHere, McpServer, McpStart, ServedModel
from stoker.records.looking import ClientsView
from stoker.rules.compare import Value

NOT_ASKED = "which models there are: no daemon answers; `stoker up` starts one"
NOT_STARTED = "how long its servers take: the client does not trust this file; --start starts them"


class Asked(NamedTuple):
    """What is to be done beside looking: start the servers (None: where the client would), mend, and which to take out."""

    start: bool | None = None
    mend: bool = False
    remove: tuple[str, ...] = ()


def make_config(paths: Paths, name: str, model: str | None, with_key: bool) -> ClientConfig:
    """Returns what makes a client ask this machine's gateway."""
    client, gateway = find(name), read_gateway(paths)
    made = _render(client, gateway, _choose_model(gateway, model))
    return msgspec.structs.replace(made, key=_read_key(paths.key_file)) if with_key else made


def _render(client: Client, gateway: GatewayHere, served: ServedModel) -> ClientConfig:
    rendered = client.render(Needs(gateway.url, gateway.key_file, served.name, served.context_tokens))
    return ClientConfig(client.name, client.title, rendered.place, rendered.text, rendered.settings, gateway.key_file)


def make_all_configs(paths: Paths, model: str | None) -> ClientsView:
    """Returns what makes every client ask for a model, and every agent start `stoker mcp`; there is no key in any."""
    gateway = read_gateway(paths)
    models = tuple(one.name for one in gateway.models or ())
    agents = tuple(make_mcp_config(paths, name) for name in ENTRIES)
    try:
        served = _choose_model(gateway, model)
    except Refused:  # which one is for the person to say
        return ClientsView(models, None, gateway.key_file, (), agents)
    configs = tuple(_render(find(name), gateway, served) for name in names())
    return ClientsView(models, served.name, gateway.key_file, configs, agents)


def make_mcp_config(paths: Paths, name: str) -> ClientConfig:
    """Returns what makes an agent start `stoker mcp`; it needs neither a daemon nor a key."""
    own = Path(sys.executable).with_name("stoker")
    words = (str(own), "mcp") if own.exists() else (sys.executable, "-P", "-m", "stoker", "mcp")
    usual, variables = find_paths({"HOME": str(Path.home())}), {}
    if paths.state != usual.state:  # agents hand on few of their own variables
        variables["STOKER_STATE"] = str(paths.state)
    if paths.config != usual.config:
        variables["STOKER_CONFIG"] = str(paths.config)
    entry, rendered = render_entry(name, words, variables)
    return ClientConfig(name, entry.title, rendered.place, rendered.text, rendered.settings, "")


def _choose_model(gateway: GatewayHere, wanted: str | None) -> ServedModel:
    """The model named, or the only one that is READY, or the only one there is."""
    models = gateway.models or ()
    if wanted is not None:
        by_service = {one.service: one.name for one in reversed(models)}
        if wanted in by_service and wanted not in by_service.values():
            hint = model_hint(wanted, by_service, "", "--model")
            raise WrongUse(f"there is no model called `{wanted}`", next_step=hint)
        return next((one for one in models if one.name == wanted), ServedModel(wanted, ""))
    ready = [one for one in models if one.is_ready] or list(models)
    if len(ready) == 1:
        return ready[0]
    said = ", ".join(one.name for one in models)
    raise Refused(
        "name the model with --model", why=f"models here: {said}" if said else "no daemon answers, so none is known",
        next_step="" if said else "`stoker up` starts one",
    )  # fmt: skip


def _read_key(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError as problem:
        raise StokerError(
            "there is no key yet", why=str(problem), next_step="`stoker up` starts the daemon, which makes one"
        ) from problem


def check_client(paths: Paths, name: str, place: Path | None, asked: Asked) -> ClientReport:
    """Returns what is wrong with a client's settings, after mending them where that was asked for."""
    client = find(name)
    if client.servers is None and (asked.start or asked.mend or asked.remove):
        raise WrongUse(f"{client.title} starts no servers that could be tried or mended here")
    file = find_file(client, place)
    text = read_text(file, f"settings of {client.title}")
    mended = mend_servers(client, file, text, asked.remove) if asked.mend or asked.remove else None
    if mended is not None:
        text = mended.text
    return _report(paths, client, file, text, asked, mended)


def _report(paths: Paths, client: Client, file: Path, text: str, asked: Asked, mended: Mended | None) -> ClientReport:
    uses = _read(client, text, file)
    gateway, servers = read_gateway(paths), client.servers(text) if client.servers else ()
    may_start = asked.start if asked.start is not None else is_trusted(client, file)
    starts = time_starts(servers) if may_start else ()
    facts = _server_facts(servers, starts)
    ports = read_ports(local_ports(uses), paths)
    grounds = [(facts_of(use, gateway, ports, is_open(file)), _behind(use, client, gateway, paths)) for use in uses]
    findings = judge([*grounds, *((((fact,), {})) for fact in facts)], client.name, str(file))
    unknown = [NOT_ASKED] if gateway.models is None else []
    unknown += [NOT_STARTED] if any(one.argv for one in servers) and not may_start else []
    return ClientReport(
        client.name, str(file), findings, starts, tuple(unknown),
        str(file) if mended and mended.backup else None, mended.backup if mended else None,
    )  # fmt: skip


def _read(client: Client, text: str, file: Path) -> tuple[ClientUse, ...]:
    try:
        return client.read(text, str(file))
    except WrongUse:
        raise
    except StokerError as problem:  # what cannot be read is no fault that was found in it
        raise WrongUse(problem.what, why=problem.why, next_step=problem.next_step) from problem


def _server_facts(servers: Iterable[McpServer], starts: tuple[McpStart, ...]) -> tuple[ClientFact, ...]:
    known = tuple(servers)
    return (*download_facts(known, starts), *start_facts(known, starts))


def _behind(use: ClientUse, client: Client, gateway: GatewayHere, paths: Paths) -> Mapping[str, Value]:
    """What is known of the engine that answers; that it is offered tools only where the client does so by itself."""
    model = find_model(use, gateway)
    if model is None:
        return {}
    return {**engine_facts(model, paths), "tools": client.offers_tools}
