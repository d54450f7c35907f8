"""Decides who answers a request: an engine, the control API, or an error that says why."""

from __future__ import annotations

import asyncio
import resource
import secrets
import ssl
from collections.abc import Coroutine
from itertools import count
from typing import NamedTuple

from stoker.config import GatewayConfig
from stoker.errors import StokerError, WrongUse
from stoker.gateway.asgi import App, run_app
from stoker.gateway.connection import ClientConnection, Limits
from stoker.gateway.cors import answer_options
from stoker.gateway.directory import Directory
from stoker.gateway.exchange import Exchange, Headers
from stoker.gateway.hosts import Hosts
from stoker.gateway.keyring import Caller, Denial, Keyring, Place
from stoker.gateway.login import SESSION, UNSNIFFED, answer_session, is_page, may_use_session
from stoker.gateway.meter import Meter, refuse_denied
from stoker.gateway.metrics import GatewayMetrics
from stoker.gateway.on_demand import render_model, render_models, render_running
from stoker.gateway.query import find_values
from stoker.gateway.refusals import JSON, end_failed, refuse
from stoker.gateway.routes import BASE, BY_MODEL, MODELS, REALTIME, SERVICE, UPSTREAM, meant, read_within, why_unknown
from stoker.gateway.serving import Serving
from stoker.gateway.sessions import Sessions
from stoker.gateway.tls import make_tls

LEFT_FOR_OTHERS = 128  # file descriptors that clients do not get: logs, the database, engines being watched
REQUEST_ID_LIMIT_BYTES = 128
BACKLOG = 1024


class Keys(NamedTuple):
    """Who may do what: `client` asks models, `control` may start programs too, `engine` is what engines are shown."""

    client: str
    control: str
    engine: str


class Door:
    """Answers every request that comes in."""

    def __init__(
        self, config: GatewayConfig, directory: Directory, app: App, metrics: GatewayMetrics, keyring: Keyring, meter: Meter,
        engine_key: str, sessions: Sessions,
    ) -> None:  # fmt: skip
        self._config = config
        self._sessions = sessions
        self._directory = directory
        self._app = app
        self._metrics = metrics
        self._keyring = keyring
        self._meter = meter
        self.serving = Serving(config, directory, metrics, engine_key, self.spawn)
        self._hosts = Hosts(config.host, config.allowed_hosts, config.cors_origins)
        # A relayed request takes two descriptors; a daemon that runs out of them can see neither memory nor processes.
        self._most_connections = max(8, (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - LEFT_FOR_OTHERS) // 2)
        self._limits = Limits(config.body_limit_bytes, config.head_limit_s, config.body_limit_s)
        self._connections: set[ClientConnection] = set()
        self._tasks: asyncio.TaskGroup | None = None
        self._begun, self._count = secrets.token_hex(4).encode(), count(1)

    async def bind(self) -> list[asyncio.Server]:
        """Takes the address without serving yet, and where that speaks TLS, a plain one on the loopback interface last.

        Raises OSError where the address is taken, and WrongUse for a certificate that cannot be used.
        """
        config = self._config
        tls = make_tls(config.tls_certificate, config.tls_key)
        servers = [await self._listen(config.host, config.port, tls)]
        return servers if tls is None else [*servers, await self._listen("127.0.0.1", 0, None)]

    async def _listen(self, host: str, port: int, tls: ssl.SSLContext | None) -> asyncio.Server:
        return await asyncio.get_running_loop().create_server(
            lambda: ClientConnection(self, self._limits),
            host, port, backlog=BACKLOG, start_serving=False, ssl=tls,
            ssl_handshake_timeout=self._config.head_limit_s if tls else None,
        )  # fmt: skip

    async def open(self, servers: list[asyncio.Server], tasks: asyncio.TaskGroup) -> None:
        """Begins to answer; requests live in the given TaskGroup."""
        self._tasks = tasks
        for server in servers:
            await server.start_serving()

    def close_idle(self) -> None:
        """Closes the connections that wait for a next request."""
        for connection in list(self._connections):
            connection.close_when_idle()

    def cut_all(self) -> None:
        """Cuts every connection that is left."""
        self.serving.close()
        for connection in list(self._connections):
            connection.cut()

    def register(self, connection: ClientConnection, is_open: bool) -> None:
        """Counts the connections; one more than there are descriptors for is cut."""
        (self._connections.add if is_open else self._connections.discard)(connection)
        if len(self._connections) > self._most_connections:
            connection.cut()

    def deny_stranger(self, headers: Headers, peer: str) -> Denial | None:
        """Returns why a large body is not read: nobody knows the key, or it is good no more."""
        return self._keyring.deny_stranger(headers, peer)

    def refuse_unread(self, exchange: Exchange, denial: Denial) -> None:
        """Answers a request that was not read to its end, which is counted and has an id like others."""
        self._begin(exchange)
        self._hosts.welcome(exchange)
        refuse_denied(exchange, denial)

    def _begin(self, exchange: Exchange) -> None:
        exchange.request_id = self._request_id(exchange)
        exchange.extra = [(b"x-request-id", exchange.request_id)]
        exchange.on_done = lambda: self._ended(exchange)

    def handle(self, exchange: Exchange) -> None:
        """Answers one request."""
        self._begin(exchange)
        path = exchange.request.path
        if not self._hosts.let_in(exchange):
            return
        if exchange.request.method == "OPTIONS":
            answer_options(exchange)
        elif path == "/health":
            if _takes(exchange, "GET", "HEAD"):
                exchange.reply(200, [JSON], b'{"status":"ok"}')
        elif path in BY_MODEL or path.startswith(("/v1/", SERVICE, UPSTREAM)) or path in (BASE, "/running") or meant(path):
            self._answer_client(exchange, path)
        elif path == "/metrics":
            if self._is_allowed(exchange, "metrics") and _takes(exchange, "GET", "HEAD"):
                self.spawn(self._tell_metrics(exchange), exchange)
        elif is_page(path) and self._config.dashboard != "off":
            self._show_page(exchange)
        elif self._is_allowed(exchange, "control"):
            exchange.extra.append(UNSNIFFED)
            self.spawn(run_app(self._app, exchange), exchange)

    def _show_page(self, exchange: Exchange) -> None:
        if exchange.request.path == SESSION:
            answer_session(exchange, self._sessions, lambda: self._is_allowed(exchange, "control"))
        elif _takes(exchange, "GET", "HEAD"):
            self.spawn(run_app(self._app, exchange), exchange)

    def _answer_client(self, exchange: Exchange, path: str) -> None:
        caller = self._is_allowed(exchange, "models")
        if caller is None:
            return
        if path in BY_MODEL or path == REALTIME:
            if _takes(exchange, "GET" if path == REALTIME else "POST"):
                self._meter.begin(exchange, caller)
                self.serving.ask_model(exchange, caller)
        elif path.startswith((SERVICE, UPSTREAM)):
            self._ask_within(exchange, caller, path)
        elif path == MODELS or path.startswith(f"{MODELS}/") or path == "/running":
            if _takes(exchange, "GET", "HEAD"):
                self._tell_models(exchange, caller, path)
        else:
            refuse(exchange, 404, "unknown_path", why_unknown(path))

    def _ask_within(self, exchange: Exchange, caller: Caller, path: str) -> None:
        """Sends a request to a path of a service's own, which the path names; llama-swap names the model there."""
        target = exchange.request.target
        named = next(read_within(target, SERVICE), None)
        offered = [named] if named else list(read_within(target, UPSTREAM))
        if not offered:
            refuse(exchange, 404, "unknown_path", f"There is no {path} here; write {SERVICE}NAME/PATH.")
            return
        self._meter.begin(exchange, caller)
        self.serving.ask_within(exchange, caller, offered, is_service=named is not None)

    def _tell_models(self, exchange: Exchange, caller: Caller, path: str) -> None:
        entries = [entry for entry in self._directory.entries() if caller.may_ask(entry.model)]
        if path == "/running":
            exchange.reply(200, [JSON], render_running(entries))
            return
        name = path.removeprefix(MODELS).removeprefix("/")
        if not name:
            exchange.reply(200, [JSON], render_models(entries))
            return
        found = next((entry for entry in entries if entry.model == name), None)
        if found is None:
            refuse(exchange, 404, "model_not_found", f"There is no model `{name}` here.", param="model")
        else:
            exchange.reply(200, [JSON], render_model(found))

    async def _tell_metrics(self, exchange: Exchange) -> None:
        request = exchange.request
        services = find_values(request.query, "engine")
        try:
            if services:
                page = await self._metrics.pass_on(services[-1])
            else:
                page = await self._metrics.render((request.header(b"accept") or b"").decode("latin-1"))
        except WrongUse as problem:
            if not exchange.done:
                refuse(exchange, 404, "unknown_service", f"{problem.what}: {problem.next_step}.")
        except StokerError as problem:
            if not exchange.done:
                refuse(exchange, 502, "no_engine_metrics", f"{problem.what}: {problem.why}.", kind="engine_error")
        else:
            if not exchange.done:
                exchange.reply(200, [(b"content-type", page.kind)], page.text)

    def _is_allowed(self, exchange: Exchange, place: Place) -> Caller | None:
        request = exchange.request
        who = self._sessions.who(request) if may_use_session(request) else None
        who = who or self._keyring.who(request.headers, exchange.peer, place)
        if isinstance(who, Caller):
            return who
        refuse_denied(exchange, who)
        return None

    def _ended(self, exchange: Exchange) -> None:
        usage = exchange.usage
        service = usage.service if usage is not None else None
        self._metrics.count(exchange.request.path, exchange.outcome, service or "")
        if usage is not None and service is not None:
            self._metrics.measure(usage, service, exchange.left)
        self._meter.end(exchange)

    def _request_id(self, exchange: Exchange) -> bytes:
        given = exchange.request.header(b"x-request-id")
        if given and len(given) <= REQUEST_ID_LIMIT_BYTES and given.isascii():
            return given
        return b"%s-%x" % (self._begun, next(self._count))

    def spawn(self, work: Coroutine[None, None, None], exchange: Exchange) -> None:
        """Works on one request until that is done, beside all others."""
        if self._tasks is None:
            work.close()
            exchange.abort()
            return
        self._tasks.create_task(_guard(work, exchange))


def _takes(exchange: Exchange, *methods: str) -> bool:
    if exchange.request.method in methods:
        return True
    message = f"{exchange.request.path} takes {methods[0]}."
    refuse(exchange, 405, "method_not_allowed", message, headers=[(b"allow", ", ".join(methods).encode())])
    return False


async def _guard(work: Coroutine[None, None, None], exchange: Exchange) -> None:
    """Keeps one request's fault from ending all others, which share its TaskGroup."""
    try:
        await work
    except Exception:  # noqa: BLE001 - it is logged
        end_failed(exchange)
