"""Stands between the relay and the client of a service that has filters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine

from stoker.gateway.chain import Chain
from stoker.gateway.exchange import Exchange, Headers
from stoker.gateway.filters import Refusal, ReplyPart
from stoker.gateway.refusals import refuse
from stoker.gateway.rewriting import EventStream, Rewriter, WholeReply

Count = Callable[[tuple[str, ...]], Awaitable[int | None]]
Spawn = Callable[[Coroutine[None, None, None], Exchange], None]


def filter_exchange(inner: Exchange, chain: Chain, count: Count, spawn: Spawn) -> Exchange | None:
    """Returns what the relay shall see of a client's exchange; answers it and returns None where a filter refuses it."""
    request = inner.request
    try:
        inner.request = request._replace(body=chain.request(request.path, request.body))
    except Refusal as problem:
        refuse(inner, 400, problem.code, problem.message, param=problem.param)
        return None
    parts = () if request.is_websocket else chain.reply_parts(request.path)
    return FilteredExchange(inner, parts, count, spawn) if parts else inner


class FilteredExchange(Exchange):
    """An exchange whose reply is filtered while it comes; `count` asks the engine for tokens.

    Only whole JSON replies and event streams of successful requests are filtered, and only where they are not compressed.
    `status` stays None until the client has got the head, which a whole reply's length has to be known for.
    """

    def __init__(self, inner: Exchange, parts: tuple[ReplyPart, ...], count: Count, spawn: Spawn) -> None:
        # The reply has to be one that can be read.
        headers = [pair for pair in inner.request.headers if pair[0] != b"accept-encoding"]
        super().__init__(inner.request._replace(headers=headers), _Onward(inner), inner.extra)
        self.request_id = inner.request_id
        self._inner = inner
        self._parts = parts
        self._count = count
        self._spawn = spawn
        self._head: tuple[int, Headers, int | None] | None = None
        self._rewriter: Rewriter | None = None
        self._asks = False
        self._ends = inner.end
        self.paused = inner.paused
        inner.on_gone, inner.on_pause, inner.on_resume = self.gone, self.pause, self.resume
        inner.on_cut = lambda denial: self.on_cut is not None and self.on_cut(denial)

    def start(self, status: int, headers: Headers, length: int | None) -> None:
        """Sends the head, or keeps it until the length is known; a later one takes the place of one that was kept."""
        kind = _kind(status, headers)
        self._head = (status, headers, length)
        self._rewriter = None
        if kind == "application/json":
            self._rewriter = WholeReply(self._parts)
            return
        if kind == "text/event-stream":
            self._rewriter, length = EventStream(self._parts), None
        self._send_head(length)

    def _send_head(self, length: int | None) -> None:
        if self._head is not None:
            status, headers, _ = self._head
            self.status, self._head, self.is_sized = status, None, length is not None
            self._inner.start(status, headers, length)

    def write(self, data: bytes) -> None:
        """Passes on what can be passed on by now."""
        if self._rewriter is None:
            self._inner.write(data)
        elif data and not self.done:
            self._pass(self._rewriter.feed(data))

    def end(self) -> None:
        """Ends the reply once all of it is passed on."""
        if self._rewriter is None:
            super().end()
        elif not self.done:
            self._end_rewritten(self._rewriter)

    def note_broken(self, status: int) -> None:
        """Notes it where the request is counted."""
        self._inner.note_broken(status)

    def break_off(self) -> None:
        """Closes once all of it is passed on, and without the reply's end."""
        self._ends = self._inner.break_off
        if self._rewriter is None:
            super().break_off()
        elif not self.done:
            self._end_rewritten(self._rewriter)

    def _end_rewritten(self, rewriter: Rewriter) -> None:
        self.done = True
        self._pass(rewriter.end())

    def _pass(self, data: bytes) -> None:
        """Sends bytes, then stops for a question, or ends."""
        if self._rewriter is None or self._inner.done:
            return
        ends = self.done and not self._rewriter.question
        if self._head is not None and (data or ends):
            self._send_head(len(data) if ends else self._head[2])
        self._inner.write(data)
        if ends:
            self._ends()
        elif self._rewriter.question and not self._asks:
            self._asks = True
            self._spawn(self._ask(self._rewriter), self)
        self._weigh()

    async def _ask(self, rewriter: Rewriter) -> None:
        tokens = await self._count(rewriter.question)
        self._asks = False
        self._pass(rewriter.answer(tokens))

    def abort(self) -> None:
        """Ends the reply so that the client sees that it is not whole, and lets go of the engine."""
        was_done, self.done = self.done, True
        self._inner.abort()
        if not was_done:
            self.on_gone()

    def pause(self) -> None:
        """Lets the relay wait for the client."""
        self._weigh()

    def resume(self) -> None:
        """Lets the relay go on, unless a question is open."""
        self._weigh()

    def _weigh(self) -> None:
        paused = self._inner.paused or self._asks
        if self.done or paused == self.paused:
            return
        if paused:
            super().pause()
        else:
            super().resume()


class _Onward:
    """The wire of a filtered exchange: the client's own exchange."""

    def __init__(self, inner: Exchange) -> None:
        self.peer = inner.peer
        self.write = inner.write
        self.abort = inner.abort
        self.break_off = inner.break_off
        self.hold = inner.hold
        self._inner = inner

    def finish(self, keep_alive: bool) -> None:
        """Ends the client's exchange, which knows itself whether its connection is kept."""
        self._inner.end()


def _kind(status: int, headers: Headers) -> str:
    """Returns the media type of a reply that filters may see; empty for errors and for what is compressed."""
    said = dict(headers)
    if status != 200 or said.get(b"content-encoding", b"identity").strip().lower() != b"identity":
        return ""
    return said.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")
