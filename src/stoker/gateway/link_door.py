"""Answers the doors of other boxes: what a link may do, and nothing else."""

from __future__ import annotations

import asyncio
import re
import resource
import ssl
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine
from urllib.parse import unquote

import msgspec

from stoker.errors import StokerError
from stoker.gateway.asgi import App, run_app
from stoker.gateway.connection import ClientConnection, Limits
from stoker.gateway.exchange import Exchange, Headers
from stoker.gateway.keyring import Caller, Denial
from stoker.gateway.link_ring import LinkRing
from stoker.gateway.meter import refuse_denied
from stoker.gateway.pinned import NOW
from stoker.gateway.refusals import JSON, refuse
from stoker.gateway.serving import Serving
from stoker.gateway.trunk.greeting import Greeting
from stoker.gateway.trunk.guests import Guest
from stoker.gateway.trunk.trunk import Trunk
from stoker.gateway.words import Words
from stoker.records.boxes import JoinAsked, JoinGiven, LetIn

JOIN, WORDS, BOX = "/join", "/words", b"/box/"
LINK = b"x-stoker-link"
BACKLOG = 256
# Without --act a link asks models, and sees what is served and how well. Logs, diagnoses, plans and the machine's facts may
# say more of a box than its models' users need.
LOOKS = re.compile(r"GET /api/(status|watch|services/[^/]+/wait)")
ACTS = re.compile(
    r"(GET /api/(machine|switch|services/[^/]+/(logs|plan|timeline|diagnosis|verifications))"
    r"|POST /api/services/[^/]+/(down|start|switch|rollback)"
    r"|POST /api/ranks/[^/]+/(check|start|renew|stop))"
)
Join = Callable[[JoinAsked, str], JoinGiven]


class LinkDoor:
    """The keeper of what comes over links. `join` lets a new door in by a code, or raises StokerError."""

    def __init__(
        self, ring: LinkRing, serving: Serving, words: Words, app: App, join: Join, limits: Limits,
        spawn: Callable[[Coroutine[None, None, None], Exchange], None],
    ) -> None:  # fmt: skip
        self._ring, self._serving, self._words, self._app = ring, serving, words, app
        self._join, self._limits, self._spawn = join, limits, spawn
        self._connections: set[ClientConnection] = set()
        self._guests: set[Guest] = set()
        # Strangers may hold connections open: the daemon and its clients' door keep the larger part of the descriptors.
        self._most_connections = max(8, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)
        self._running: defaultdict[str, dict[Exchange, None]] = defaultdict(dict)

    async def bind(self, host: str, port: int, tls: ssl.SSLContext) -> asyncio.Server:
        """Takes the address without serving yet; raises OSError where it is taken."""
        return await asyncio.get_running_loop().create_server(
            lambda: Greeting(self._connect, self._make_trunk), host, port, backlog=BACKLOG, start_serving=False, ssl=tls,
            ssl_handshake_timeout=self._limits.head_s,
        )  # fmt: skip

    def _connect(self) -> ClientConnection:
        return ClientConnection(self, self._limits)

    def _make_trunk(self) -> Trunk:
        guest = Guest(self, self._limits, self._guests.discard)
        self._guests.add(guest)
        if self._is_full:
            asyncio.get_running_loop().call_soon(guest.trunk.abort)
        return guest.trunk

    @property
    def _is_full(self) -> bool:
        return len(self._connections) + len(self._guests) > self._most_connections

    def register(self, connection: ClientConnection, is_open: bool) -> None:
        """Knows the connections, so that none outlives the daemon; one more than there is room for is cut."""
        (self._connections.add if is_open else self._connections.discard)(connection)
        if self._is_full:
            connection.cut()

    def cut_all(self) -> None:
        """Cuts every connection."""
        for connection in list(self._connections):
            connection.cut()
        for guest in list(self._guests):
            guest.trunk.close()

    def deny_stranger(self, headers: Headers, peer: str) -> Denial | None:
        """Returns why a large body is not read: the key is of no link."""
        who = self._ring.who(headers, peer)
        return who if isinstance(who, Denial) else None

    def refuse_unread(self, exchange: Exchange, denial: Denial) -> None:
        """Answers a request that was not read to its end."""
        refuse_denied(exchange, denial)

    def handle(self, exchange: Exchange) -> None:
        """Answers one request."""
        self.answer(exchange)

    def answer(self, exchange: Exchange) -> bool:
        """Answers one request; returns whether its key was a link's."""
        request = exchange.request
        exchange.request_id = request.header(b"x-request-id") or b""
        exchange.extra = [(b"x-request-id", exchange.request_id)] if exchange.request_id else []
        if request.path == JOIN:
            self._let_in(exchange)
            return False
        door = self._ring.who(request.headers, exchange.peer)
        if isinstance(door, Denial):
            refuse_denied(exchange, door)
            return False
        self._follow(exchange, door)
        self._answer_door(exchange, door)
        return True

    def _answer_door(self, exchange: Exchange, door: LetIn) -> None:
        request = exchange.request
        if request.path == WORDS:
            self._words.follow(exchange)
        elif request.target.startswith(BOX):
            self._ask(exchange, door)
        elif _may_call(request.method, request.path, door):
            exchange.request = request._replace(headers=_named(request.headers, door.name))
            exchange.extra.append((NOW.encode(), b"%.3f" % time.time()))  # so that times in the answer are understood there
            self._spawn(run_app(self._app, exchange), exchange)
        else:
            said = f"The link of `{door.name}` does not open {request.method} {request.path}."
            step = "" if door.may_act else " It may look; `stoker boxes code --act` makes a code for one that may act."
            refuse(exchange, 403, "not_of_this_link", said + step, kind="permission_error")

    def _let_in(self, exchange: Exchange) -> None:
        if wait_s := self._ring.wait_s(exchange.peer):
            refuse_denied(exchange, self._ring.too_many(wait_s))
            return
        try:
            asked = msgspec.json.decode(exchange.request.body, type=JoinAsked)
            given = self._join(asked, exchange.peer)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
            refuse(exchange, 400, "invalid_join", f"This is no request to join: {problem}.")
        except StokerError as problem:
            denial = self._ring.fail(exchange.peer)
            if denial is not None:
                refuse_denied(exchange, denial)
            else:
                said = f"{problem.what}: {problem.why}; {problem.next_step}"
                refuse(exchange, 403, "join_refused", said, kind="permission_error")
        else:
            exchange.reply(200, [JSON], msgspec.json.encode(given))

    def _ask(self, exchange: Exchange, door: LetIn) -> None:
        """Sends a request to exactly the service and plan that its target names: /box/SERVICE/PLAN/path?query."""
        request = exchange.request
        service, _, rest = request.target[len(BOX) :].decode("latin-1").partition("/")
        plan_id, _, target = rest.partition("/")
        path = unquote("/" + target.partition("?")[0])
        exchange.request = request._replace(path=path, target=b"/" + target.encode("latin-1"))
        self._serving.ask_exactly(exchange, Caller(f"box:{door.name}"), service, plan_id)

    def _follow(self, exchange: Exchange, door: LetIn) -> None:
        running, ended = self._running[door.name], exchange.on_done

        def done() -> None:
            running.pop(exchange, None)
            ended()

        running[exchange] = None
        exchange.on_done = done

    def is_here(self, name: str) -> bool:
        """Tells whether a door follows what this box says."""
        return any(self._words.is_followed(one) for one in self._running[name])

    def cut(self, name: str) -> int:
        """Cuts all that runs over a link that is no more; returns how much that was."""
        running = list(self._running.pop(name, ()))
        for exchange in running:
            exchange.on_gone()
            exchange.abort()
        return len(running)


def _named(headers: Headers, link: str) -> Headers:
    """Returns the headers with the name of the link over which a request came, whatever it says of that itself."""
    return [*((name, value) for name, value in headers if name != LINK), (LINK, link.encode())]


def _may_call(method: str, path: str, door: LetIn) -> bool:
    call = f"{method} {path}"
    return LOOKS.fullmatch(call) is not None or (door.may_act and ACTS.fullmatch(call) is not None)
