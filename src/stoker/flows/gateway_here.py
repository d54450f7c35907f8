"""What clients of this machine have to know of its gateway: the address, the models, the engines behind them, the ports."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping

from stoker.config import Config, Paths, read_config
from stoker.errors import StokerError
from stoker.facts.machine.ports import read_listeners
from stoker.flows.client import read_daemon
from stoker.gateway.hosts import reachable
from stoker.plan.situation import setting_facts
from stoker.records import GatewayHere, Plan, ServedModel
from stoker.rules.compare import Value
from stoker.store.services import read_saved

ENGINE, OTHER = "engine", "other"


def read_gateway(paths: Paths) -> GatewayHere:
    """Returns the gateway as its daemon tells it, or as `stoker.toml` would have it where none answers."""
    with contextlib.suppress(StokerError):
        if daemon := read_daemon(paths):
            return GatewayHere(daemon.status().gateway.url, str(paths.key_file), daemon.models())
    gateway = read_config(paths.config).gateway
    host = reachable(gateway.host)
    scheme = "https" if gateway.tls_certificate else "http"
    address = f"{scheme}://{f'[{host}]' if ':' in host else host}:{gateway.port}"
    return GatewayHere(f"{address}/v1", str(paths.key_file))


def read_ports(ports: Iterable[int], paths: Paths) -> dict[int, str]:
    """Returns who listens on these ports of this machine: an engine of Stoker's, or somebody else; nobody is left out."""
    engines = {saved.handle.port for saved in read_saved(paths.database) if saved.handle}
    taken = {one.port for one in read_listeners()}
    return {port: ENGINE if port in engines else OTHER for port in ports if port in taken}


def engine_facts(model: ServedModel, paths: Paths) -> Mapping[str, Value]:
    """Returns what is known of the engine behind a model: its flags by its plan, and the filters of its service."""
    plan = next((one.plan for one in read_saved(paths.database) if one.plan.service == model.service), None)
    if plan is None or not plan.is_engine:
        return {}
    return {**_plan_facts(plan), "filters": _filters(read_config(paths.config), plan.service)}


def _plan_facts(plan: Plan) -> Mapping[str, Value]:
    names = tuple(dict.fromkeys(name.lower() for name in (plan.model, plan.model_path.rstrip("/").rsplit("/", 1)[-1])))
    version = {"version": plan.engine_version} if plan.engine_version else {}
    return {**setting_facts(plan.settings), "engine": plan.engine, "model": names, **version}


def _filters(config: Config, service: str) -> str:
    """The filters in one text: an empty list of values would be a fact that nobody knows."""
    wish = config.services.get(service)
    return " ".join(wish.filters) if wish else ""
