"""Decides who answers a request: the engine of the model it names, the control API, or an error that says why."""

from __future__ import annotations

import asyncio
import hmac
import logging
import resource
import secrets
from collections import Counter, defaultdict
from collections.abc import Coroutine
from typing import NamedTuple

import msgspec

from stoker.config import GatewayConfig
from stoker.gateway.asgi import App, run_app
from stoker.gateway.connection import ClientConnection, Limits
from stoker.gateway.directory import Directory
from stoker.gateway.exchange import Exchange, Headers
from stoker.gateway.hosts import known_hosts, normalise
from stoker.gateway.metrics import GatewayMetrics
from stoker.gateway.on_demand import find_or_refuse, name_real_model, refuse_unready, render_models
from stoker.gateway.refusals import JSON, refuse
from stoker.gateway.relay import Relay, identity
from stoker.records import Endpoint

RELAYED = frozenset({"/v1/chat/completions", "/v1/completions", "/v1/embeddings"})
LEFT_FOR_OTHERS = 128  # file descriptors that clients do not get: logs, the database, engines being watched
REQUEST_ID_LIMIT_BYTES = 128
logger = logging.getLogger("stoker.gateway")


class Keys(NamedTuple):
    """Who may do what: `client` asks models, `control` may start programs too, `engine` is what engines are shown."""

    client: str
    control: str
    engine: str


class _Named(msgspec.Struct):
    model: str


class Door:
    """Answers every request that comes in."""

    def __init__(self, config: GatewayConfig, directory: Directory, app: App, metrics: GatewayMetrics, keys: Keys) -> None:
        self._config = config
        self._directory = directory
        self._app = app
        self._metrics = metrics
        self._keys = keys
        self._hosts = known_hosts(config.host, config.allowed_hosts)
        # A relayed request takes two descriptors; a daemon that runs out of them can see neither memory nor processes.
        self._most_connections = max(8, (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - LEFT_FOR_OTHERS) // 2)
        self._limits = Limits(config.body_limit_bytes, config.head_limit_s, config.body_limit_s)
        self._connections: set[ClientConnection] = set()
        self._in_flight: Counter[str] = Counter()
        self._relays: defaultdict[str, set[Relay]] = defaultdict(set)
        self._heard_at: defaultdict[str, float] = defaultdict(float)
        self._tasks: asyncio.TaskGroup | None = None

    def in_flight(self, service: str) -> int:
        """Returns how many requests a service is answering."""
        return self._in_flight[service]

    def heard_at(self, service: str) -> float:
        """Returns when a service's engine last sent something to a client, on the event loop's clock; 0 for never."""
        return max(self._heard_at[service], *(relay.heard_at for relay in self._relays[service]), 0.0)

    async def bind(self) -> asyncio.Server:
        """Takes the address without serving yet; raises OSError where it is taken."""
        loop = asyncio.get_running_loop()
        return await loop.create_server(
            lambda: ClientConnection(self.handle, self._limits, self._register),
            self._config.host, self._config.port, backlog=1024, start_serving=False,
        )  # fmt: skip

    async def open(self, server: asyncio.Server, tasks: asyncio.TaskGroup) -> None:
        """Begins to answer; requests live in the given TaskGroup."""
        self._tasks = tasks
        await server.start_serving()

    def close_idle(self) -> None:
        """Closes the connections that wait for a next request."""
        for connection in list(self._connections):
            connection.close_when_idle()

    def cut_all(self) -> None:
        """Cuts every connection that is left."""
        for connection in list(self._connections):
            connection.cut()

    def _register(self, connection: ClientConnection, is_open: bool) -> None:
        (self._connections.add if is_open else self._connections.discard)(connection)
        if len(self._connections) > self._most_connections:
            connection.cut()

    def handle(self, exchange: Exchange) -> None:
        """Answers one request."""
        exchange.extra = [(b"x-request-id", _request_id(exchange))]
        exchange.on_done = lambda: self._metrics.count(exchange.request.path, exchange.status)
        path = exchange.request.path
        if not self._is_for_us(exchange):
            return
        if path == "/health":
            exchange.reply(200, [JSON], b'{"status":"ok"}')
        elif path.startswith("/v1/"):
            self._answer_client(exchange, path)
        elif path == "/metrics":
            if self._is_allowed(exchange, self._keys.client, self._keys.control):
                exchange.reply(200, [(b"content-type", self._metrics.content_type)], self._metrics.render())
        elif self._is_allowed(exchange, self._keys.control):
            self._spawn(run_app(self._app, exchange), exchange)

    def _answer_client(self, exchange: Exchange, path: str) -> None:
        if not self._is_allowed(exchange, self._keys.client):
            return
        if path in RELAYED:
            self._relay(exchange)
        elif path == "/v1/models":
            self._list_models(exchange)
        else:
            refuse(exchange, 404, "unknown_path", f"There is no {path} here.")

    def _is_for_us(self, exchange: Exchange) -> bool:
        """Refuses what a web page may have made the user's browser send (DNS rebinding, cross-site requests)."""
        hosts = [value for name, value in exchange.request.headers if name == b"host"]
        if len(hosts) > 1 or (not hosts and exchange.request.http_version == "1.1"):
            refuse(exchange, 400, "malformed_request", "An HTTP/1.1 request names one host (RFC 9112, 3.2).")
            return False
        host, origin = exchange.request.header(b"host"), exchange.request.header(b"origin")
        if host is not None and normalise(host.decode("latin-1")) not in self._hosts:
            message = f"The host {host.decode('latin-1')!r} is not one of this gateway's (gateway.allowed_hosts)."
            refuse(exchange, 403, "foreign_host", message, kind="permission_error")
            return False
        if origin is not None and normalise(origin.decode("latin-1").partition("://")[2]) not in self._hosts:
            message = "Web pages of other sites may not ask here."
            refuse(exchange, 403, "foreign_origin", message, kind="permission_error")
            return False
        return True

    def _is_allowed(self, exchange: Exchange, *keys: str) -> bool:
        shown = exchange.request.header(b"authorization") or b""
        scheme, _, key = shown.partition(b" ")
        if scheme.lower() == b"bearer" and any(hmac.compare_digest(key.strip(), good.encode()) for good in keys):
            return True
        message = "The key is missing or wrong. Send `Authorization: Bearer KEY`; `stoker status` names the key's file."
        challenge = [(b"www-authenticate", b"Bearer")]
        refuse(exchange, 401, "invalid_api_key", message, kind="authentication_error", headers=challenge)
        return False

    def _list_models(self, exchange: Exchange) -> None:
        if exchange.request.method not in ("GET", "HEAD"):
            refuse(exchange, 405, "method_not_allowed", "/v1/models takes GET.", headers=[(b"allow", b"GET, HEAD")])
            return
        exchange.reply(200, [JSON], render_models(self._directory.entries()))

    def _relay(self, exchange: Exchange) -> None:
        if exchange.request.method != "POST":
            message = f"{exchange.request.path} takes POST."
            refuse(exchange, 405, "method_not_allowed", message, headers=[(b"allow", b"POST")])
            return
        model = _read_model(exchange)
        if model is None:
            return
        entry = find_or_refuse(exchange, self._directory, model)
        if entry is None:
            return
        if entry.endpoint is None:
            refuse_unready(exchange, self._directory, entry)
        elif (filters := name_real_model(exchange, entry)) is not None:
            self._send(exchange, entry.endpoint, filters)

    def _send(self, exchange: Exchange, endpoint: Endpoint, filters: Headers) -> None:
        service = endpoint.service
        self._in_flight[service] += 1
        exchange.extra = [*identity(endpoint, exchange.extra[0][1]), *filters]

        relay = Relay(exchange, endpoint, endpoint.key or self._keys.engine, self._config.engine_silence_limit_s)

        def done() -> None:
            self._in_flight[service] -= 1
            self._relays[service].discard(relay)
            self._heard_at[service] = max(self._heard_at[service], relay.heard_at)
            self._metrics.count(exchange.request.path, exchange.status, service)

        exchange.on_done = done
        self._relays[service].add(relay)
        self._spawn(relay.run(), exchange)

    def _spawn(self, work: Coroutine[None, None, None], exchange: Exchange) -> None:
        if self._tasks is None:
            work.close()
            exchange.abort()
            return
        self._tasks.create_task(_guard(work, exchange))


async def _guard(work: Coroutine[None, None, None], exchange: Exchange) -> None:
    """Keeps one request's fault from ending all others, which share its TaskGroup."""
    try:
        await work
    except Exception:
        logger.exception("path=%s failed", exchange.request.path)
        if exchange.status is None and not exchange.done:
            refuse(exchange, 500, "internal_error", "Stoker failed here; see daemon.log.", kind="server_error")
        else:
            exchange.abort()


def _request_id(exchange: Exchange) -> bytes:
    given = exchange.request.header(b"x-request-id")
    if given and len(given) <= REQUEST_ID_LIMIT_BYTES and given.isascii():
        return given
    return secrets.token_hex(8).encode()


def _read_model(exchange: Exchange) -> str | None:
    """Returns the model that a body names; answers 400 and returns None where it names none."""
    try:
        return msgspec.json.decode(exchange.request.body, type=_Named).model
    except msgspec.ValidationError as problem:
        message = f"The body must be a JSON object with a text `model`: {problem}."
        refuse(exchange, 400, "invalid_model", message, param="model")
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        refuse(exchange, 400, "invalid_json", f"The body is not valid JSON: {problem}.")
    except RecursionError:
        refuse(exchange, 400, "nested_too_deeply", "The body's JSON is nested too deeply.")
    return None
