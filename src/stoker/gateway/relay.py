"""Carries one request to an engine and its reply back, byte for byte."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from stoker.gateway.engine_connection import EngineConnection
from stoker.gateway.exchange import Exchange
from stoker.gateway.framing import BrokenFraming, ChunkedBody, OpenBody
from stoker.gateway.keyring import Denial
from stoker.gateway.passage import Passage, Tunnel
from stoker.gateway.pool import Pool
from stoker.gateway.refusals import error_event, refuse
from stoker.gateway.reply_head import SWITCHED, ReplyHead, read_head, split_head
from stoker.gateway.silence import Silence
from stoker.gateway.stream_end import lacks_its_end
from stoker.gateway.way import Way

UNSERVED = 421  # Misdirected Request (RFC 9110, 15.5.20): a box says that it sent this to no engine
INTERIM = frozenset(range(100, 200)) - {SWITCHED}


class Relay(asyncio.Protocol):
    """One request under way to an engine: reads the reply's head, and hands the connection to a `Passage` for its body."""

    # Tells that nothing was sent, since the other end cannot be reached; returns whether somebody else was asked instead.
    on_unreached: Callable[[str], bool] | None = None

    def __init__(self, exchange: Exchange, way: Way, pool: Pool, silence: Silence) -> None:
        self._exchange = exchange
        self._way = way
        self._endpoint = way.endpoint
        self._pool = pool
        self._silence = silence
        self._now = asyncio.get_running_loop().time
        self._connection: EngineConnection | None = None
        self._reply: ReplyHead | None = None
        self._held = b""
        self._heard_at = self._now()
        self.passage: Passage | None = None
        exchange.on_gone, exchange.on_cut = self.abort, self._tell

    def begin(self) -> bool:
        """Sends the request on a connection that is there; returns whether one was."""
        connection = self._pool.take(self._endpoint) if self._endpoint.reuses_connections else None
        if connection is not None:
            self._ask(connection)
        return connection is not None

    async def run(self) -> None:
        """Connects and sends the request; the rest happens as bytes come."""
        try:
            connection = await self._pool.connect(self._endpoint)
        except OSError as problem:
            said = f"cannot be reached: {str(problem) or 'no answer came in time'}"
            if self.on_unreached is None or self._exchange.done or not self.on_unreached(said):
                self._break(502, "engine_unreachable", f"{self._who()} {said}.")
        else:
            self._ask(connection)

    def _ask(self, connection: EngineConnection) -> None:
        exchange, transport = self._exchange, connection.transport
        if exchange.done:  # the client left meanwhile
            connection.drop()
            return
        self._connection = connection
        exchange.on_pause, exchange.on_resume = transport.pause_reading, transport.resume_reading
        if exchange.paused:
            transport.pause_reading()
        self._heard_at = self._now()
        request = exchange.request
        connection.ask(self, self._way.render_head(request, exchange.request_id), request.body)
        self._silence.watch(self)

    def abort(self) -> None:
        """Ends the request at the engine at once, since nobody waits for it any more."""
        self._silence.forget(self)
        if self._connection is None:
            return
        if self._reply is not None and self._reply.status == SWITCHED:
            self._connection.close_soon()
        else:
            self._connection.drop()

    @property
    def is_sent(self) -> bool:
        """Tells whether the request has gone out."""
        return self._connection is not None or self._reply is not None

    @property
    def model(self) -> str:
        """The model that is asked."""
        return self._endpoint.model

    def heard_at(self) -> float:
        """Returns when the engine last said something, on the event loop's clock; as exactly as this is asked often."""
        moved = self.passage is not None and self.passage.moved
        if moved or self._exchange.paused:  # then it is us who do not listen
            self._heard_at = self._now()
        if self.passage is not None:
            self.passage.moved = False
        return self._heard_at

    def end_silent(self) -> None:
        """Ends the request, since the engine was silent for too long."""
        said = f"{self._who()} said nothing for {self._silence.limit_s:g} s"
        self.end_broken(504, "engine_silent", f"{said} (gateway.engine_silence_limit_s).")

    def end_broken(self, status: int, code: str, message: str) -> None:
        """Ends the request with an error, in the stream where one is under way."""
        self._break(status, code, message)
        self.abort()

    def _who(self) -> str:
        endpoint = self._endpoint
        service = endpoint.service.partition("@")[0]
        return f"The engine of {service}" + (f" on the box {endpoint.box}" if endpoint.box else "")

    # What the connection tells until the reply's body begins, and as long as it is a tunnel.

    def data_received(self, data: bytes) -> None:
        """Passes the head on once it is there, with the names of who answered."""
        self._heard_at = self._now()
        data, self._held = self._held + data, b""
        try:
            while (parts := split_head(data)) is not None:
                head, data = parts
                reply = read_head(head, self._exchange.request.method)
                if reply.status not in INTERIM:
                    self._start(reply, data)
                    return
        except BrokenFraming as problem:
            self._end_malformed(problem)
        self._held = data

    def connection_lost(self, error: Exception | None) -> None:
        """Ends the reply: cleanly only if it is whole."""
        self._silence.forget(self)
        if self._exchange.done:
            return
        if error is None and self._may_end_so():
            self._exchange.end()
            return
        name, box = self._endpoint.service.partition("@")[0], self._endpoint.box
        see = f"`stoker logs {name}" + (f" --on {box}`" if box else "`")
        self._break(502, "engine_died", f"{self._who()} broke the connection before its reply was whole; see {see}.")

    def _may_end_so(self) -> bool:
        """Tells whether the end of its connection ends the reply, which of a stream only its last event tells."""
        reply, passage = self._reply, self.passage
        if reply is None or not isinstance(reply.body, OpenBody):
            return False
        return passage is None or not reply.is_stream or not lacks_its_end(self._exchange.request.path, passage.tail)

    def _start(self, reply: ReplyHead, data: bytes) -> None:
        if reply.status == SWITCHED and not self._exchange.request.is_websocket:
            raise BrokenFraming("it switched to another protocol, which nobody asked for")
        if reply.status == UNSERVED and self.on_unreached is not None:
            self._turn_away()
            return
        self._reply, connection = reply, self._connection
        if connection is None:
            return
        if reply.status == SWITCHED:
            self._silence.forget(self)  # who speaks when is theirs to agree on
            write = self._exchange.open_tunnel(reply.headers, connection.transport.write)
            passage: Passage = Tunnel(self._exchange.hold, write, self.connection_lost)
        else:
            self._exchange.start(reply.status, reply.headers, reply.length)
            as_it_comes = self._exchange.chunk_writer() if isinstance(reply.body, ChunkedBody) else None
            passage = Passage(
                reply.body, as_it_comes or self._exchange.write, as_it_comes is not None, reply.is_stream,
                on_end=self._finish, on_broken=self._end_malformed, on_lost=self.connection_lost,
            )  # fmt: skip
        self.passage = passage
        connection.transport.set_protocol(passage)
        if data or reply.body.done:
            passage.data_received(data)

    def _turn_away(self) -> None:
        """Takes another box's word that no engine has seen the request: another replica may be asked."""
        self._silence.forget(self)
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.transport.set_protocol(connection)
            connection.drop()
        if self.on_unreached is None or not self.on_unreached("serves it no more"):
            self._break(503, "replica_changed", f"{self._who()} does not serve this any more as it did.")

    def _finish(self) -> None:
        self._silence.forget(self)
        reply, connection = self._reply, self._connection
        self._connection = None
        self._exchange.end()  # first: whose turn comes now gets another connection, as an engine may close this one unsaid
        if connection is None or reply is None:
            return
        if reply.reusable and self._endpoint.reuses_connections and not reply.body.rest:
            if self._exchange.paused:
                connection.transport.resume_reading()
            connection.give_back(reply.is_uvicorn)
        else:
            connection.close()

    def _end_malformed(self, problem: BrokenFraming) -> None:
        self._break(502, "engine_malformed", f"{self._who()} broke HTTP: {problem}.")
        self.abort()

    def _break(self, status: int, code: str, message: str) -> None:
        exchange = self._exchange
        if exchange.done:
            return
        if exchange.status is None or self._reply is None:  # a client that waited for the start has a head already
            refuse(exchange, status, code, message, kind="engine_error")
            return
        exchange.note_broken(status)
        if self._tell(Denial(status, code, message, "engine_error")):
            exchange.break_off()  # no clean end: who passes over the event shall not take the answer for whole
        else:
            exchange.abort()

    def _tell(self, denial: Denial) -> bool:
        """Says in the stream under way why it ends, where its framing allows; returns whether it does."""
        exchange, reply = self._exchange, self._reply
        if reply is None or not reply.is_stream or not exchange.end_chunks(_closing(reply)):
            return False
        exchange.write(error_event(exchange.request.path, denial))
        return True


def _closing(reply: ReplyHead) -> bytes | None:
    return reply.body.closing() if isinstance(reply.body, ChunkedBody) else b""
