"""Says by the rules' names what a client's file means: whom it asks, for which model, with which key."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from urllib.parse import SplitResult, urlsplit

from stoker.plan.secrets import HIDDEN
from stoker.records import ClientFact, ClientUse, GatewayHere, Scalar, ServedModel, Written
from stoker.rules.compare import Value

Ports = Mapping[int, str]  # who listens on a port of this machine: 'engine', 'other'; absent: nobody
ANYWHERE = ("0.0.0.0", "::")
# References to a key that is kept elsewhere, and what people write where no key is wanted.
REFERENCE = re.compile(r"os\.environ/|\$|\{(?:env|file):|<|%|your[-_ ]|xxx", re.IGNORECASE)
LEAST_KEY = 12


class Ground(Mapping[str, Value]):
    """All that one use says, as the rules ask for it; a name that stands several times has several values."""

    def __init__(self, facts: tuple[ClientFact, ...], more: Mapping[str, Value]) -> None:
        self.facts = facts
        self._values: dict[str, Value] = dict(more)
        for name in dict.fromkeys(fact.name for fact in facts):
            values = [fact.value for fact in facts if fact.name == name and fact.value is not None]
            self._values[name] = values[0] if len(values) == 1 else tuple(values) or None

    def __getitem__(self, name: str) -> Value:
        """Returns a value."""
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        """Goes over the names."""
        return iter(self._values)

    def __len__(self) -> int:
        """Returns how many names there are."""
        return len(self._values)


def facts_of(use: ClientUse, gateway: GatewayHere, ports: Ports, is_open: bool) -> tuple[ClientFact, ...]:
    """Returns what one use says; `is_open`: others on this machine may read the file."""
    return (*_address(use, gateway, ports), *_model(use, gateway), *_key(use, is_open), *use.facts)


def local_ports(uses: tuple[ClientUse, ...]) -> set[int]:
    """Returns the ports of this machine that the uses ask."""
    parts = [split_url(use.base_url.value) for use in uses if use.base_url]
    return {port for one in parts if one and is_this_machine(one.hostname or "") and (port := port_of(one))}


def split_url(url: str) -> SplitResult | None:
    """Returns an address in its parts; None where it is none, or says its host by a variable."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts if parts.scheme in ("http", "https") and parts.hostname else None


def port_of(parts: SplitResult) -> int:
    """Returns the port that an address means."""
    return parts.port or (443 if parts.scheme == "https" else 80)


def is_this_machine(host: str) -> bool:
    """Tells whether a host is the one that the client runs on."""
    try:
        return ipaddress.ip_address(host).is_loopback or host in ANYWHERE
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _is_near(host: str) -> bool:
    """Tells whether a host is one of the people at the desk, and no service on the internet."""
    try:
        return is_this_machine(host) or ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".lan", ".internal", ".home.arpa"))


def _address(use: ClientUse, gateway: GatewayHere, ports: Ports) -> Iterator[ClientFact]:
    parts = split_url(use.base_url.value) if use.base_url else None
    if use.base_url is None or parts is None or not _is_near(parts.hostname or ""):
        return
    yield _fact("client_host", parts.hostname, use.base_url)
    yield _fact("client_base", parts.path.rstrip("/") or "/", use.base_url)
    if is_this_machine(parts.hostname or ""):
        yield _fact("client_port", who_answers(port_of(parts), gateway, ports), use.base_url)


def who_answers(port: int, gateway: GatewayHere, ports: Ports) -> str:
    """Returns who answers on a port: 'gateway', 'engine', 'other' or 'nobody'."""
    own = split_url(gateway.url)
    return "gateway" if own and port == port_of(own) else ports.get(port, "nobody")


def find_model(use: ClientUse, gateway: GatewayHere) -> ServedModel | None:
    """Returns the gateway's model that a use asks for; None where it asks somebody else, or for another."""
    models = gateway.models if asks_gateway(use, gateway) else None
    return next((one for one in models or () if use.model and one.name == use.model.value), None)


def asks_gateway(use: ClientUse, gateway: GatewayHere) -> bool:
    """Tells whether a use asks this machine's gateway."""
    asked, own = split_url(use.base_url.value) if use.base_url else None, split_url(gateway.url)
    return bool(asked and own and is_this_machine(asked.hostname or "") and port_of(asked) == port_of(own))


def _model(use: ClientUse, gateway: GatewayHere) -> Iterator[ClientFact]:
    if use.model is None or gateway.models is None or not asks_gateway(use, gateway):
        return
    served = find_model(use, gateway)
    names = ", ".join(f"`{one.name}`" for one in gateway.models) or "none yet"
    shown = f"`{use.model.path}` is `{use.model.value}`; the gateway has {names}"
    yield ClientFact("client_model", "served" if served else "unknown", use.model.line, shown)
    if served and served.context_tokens is not None:
        shown = f"`{use.model.value}` has {served.context_tokens:,} tokens"
        yield ClientFact("client_context", served.context_tokens, use.model.line, shown)


def _key(use: ClientUse, is_open: bool) -> Iterator[ClientFact]:
    if use.key is None or not is_plain_key(use.key.value):
        return
    place = "in a file that others may read" if is_open else "in the file"
    shown = f"`{use.key.path}` is {HIDDEN}, {place}"
    yield ClientFact("client_key", "open" if is_open else "text", use.key.line, shown)


def is_plain_key(value: str) -> bool:
    """Tells whether this is a key itself, and neither a reference to one nor a word that stands for none."""
    return len(value) >= LEAST_KEY and not REFERENCE.search(value) and " " not in value


def _fact(name: str, value: Scalar | None, written: Written) -> ClientFact:
    return ClientFact(name, value, written.line, f"`{written.path}` is {without_password(written.value)}")


def without_password(url: str) -> str:
    """Returns an address without the password that may stand in it."""
    return re.sub(r"//[^/@\s]*@", f"//{HIDDEN}@", url)
