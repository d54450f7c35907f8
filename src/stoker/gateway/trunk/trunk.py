"""One connection that carries many channels, as either end sees it."""

from __future__ import annotations

import asyncio
import logging
import select
import socket
from collections.abc import Callable
from typing import Any, cast

from stoker.gateway.sealed import Cut
from stoker.gateway.trunk.channel import Channel
from stoker.gateway.trunk.frames import CREDIT, DATA, FRAME_BYTES, HEAD, BrokenTrunk, Kind

MOST_NUMBERS = 2**31  # in a trunk's life: none is given twice
MOST_CHANNELS = 4096
FLUSH_BYTES = 64 * 1024
# Short frames are written although the other end reads nothing; who asks for so many of them is no door of ours.
MOST_UNREAD_BYTES = 4 * 1024**2
# Where the other end has not taken what it was sent, or not answered TCP's own question, for so long, the connection has
# ended: a box shall not work on for a door that is deaf. Both ends always read, so nobody is only slow.
DEAF_LIMIT_S = 5
BELOW = (
    # A megabyte of somebody's prompt in the kernel's buffer would be sent before the question whether the box is there.
    (socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, FLUSH_BYTES),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAF_LIMIT_S * 1000),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, DEAF_LIMIT_S),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
)
logger = logging.getLogger("stoker.gateway")


class Trunk(asyncio.Protocol):
    """Takes what comes apart by channels, and sends together what they write in one round of the event loop.

    `accept` makes the protocol of each channel that the other end opens, or raises BrokenTrunk; without it none may. A trunk
    that carries nothing for `idle_s` is closed. `on_lost` is called when it has ended.
    """

    def __init__(
        self, idle_s: float, on_lost: Callable[[Trunk], None], accept: Callable[[], asyncio.Protocol] | None = None
    ) -> None:
        self.is_full = False
        self._idle_s, self._on_lost, self._accept = idle_s, on_lost, accept
        self._loop = asyncio.get_running_loop()
        self._channels: dict[int, Channel] = {}
        self._next_number = 0
        self._rest = b""
        self._out = bytearray()
        self._is_flush_due = False
        self._unread_bytes = 0
        self._waiting: dict[Channel, None] = {}
        self._here = asyncio.Event()
        self._look = select.poll()

    # What the connection below tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps what bytes are written to."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=FLUSH_BYTES)
        below = transport.get_extra_info("socket")
        for level, option, value in BELOW:
            below.setsockopt(level, option, value)
        self._look.register(below.fileno(), select.POLLRDHUP)
        self._empty_since = self._loop.time()
        self._timer = self._loop.call_later(self._idle_s, self._close_if_idle)

    def _close_if_idle(self) -> None:
        if not self._channels and self._loop.time() - self._empty_since >= self._idle_s:
            self.close()
        else:
            self._timer = self._loop.call_later(self._idle_s, self._close_if_idle)

    def data_received(self, data: bytes) -> None:
        """Hands each frame on to its channel."""
        if self._rest:
            data = self._rest + data
        try:
            self._rest = data[self._walk(data) :]
        except BrokenTrunk as problem:
            logger.warning("peer=%s broke a link: %s", self.get_extra_info("peername"), problem)
            self.abort()

    def _walk(self, data: bytes) -> int:
        """Returns where the first frame begins that has not come whole."""
        at, size_bytes = 0, len(data)
        while at + HEAD.size <= size_bytes:
            number, frame_bytes, kind = HEAD.unpack_from(data, at)
            if frame_bytes > FRAME_BYTES:
                raise BrokenTrunk(f"a frame of {frame_bytes} bytes")
            begin = at + HEAD.size
            if begin + frame_bytes > size_bytes:
                break
            at = begin + frame_bytes
            channel = self._channels.get(number)
            try:
                if kind == DATA and channel is not None:
                    if frame_bytes:
                        channel.feed(data[begin:at])
                else:
                    self._obey(number, kind, data[begin:at], channel)
            except BrokenTrunk:
                raise
            except Exception as fault:  # noqa: BLE001 - one channel's, which is not to end all others
                self.fail(channel, fault)
        return at

    def fail(self, channel: Channel | None, fault: Exception) -> None:
        """Ends a channel whose protocol failed."""
        self._loop.call_exception_handler({"message": "a channel's protocol failed", "exception": fault})
        if channel is not None:
            channel.fail(fault)

    def _obey(self, number: int, kind: int, data: bytes, channel: Channel | None) -> None:
        if kind == Kind.OPEN:
            self._let_in(number)
        elif kind == Kind.ASK:
            self.put(number, Kind.HERE)
        elif kind == Kind.HERE:
            self._here.set()
        elif channel is None and number < self._next_number:
            return  # it was ended here while this was under way
        elif channel is None:
            raise BrokenTrunk(f"something for channel {number}, which nobody opened")
        else:
            self._tell(channel, kind, data)

    def _tell(self, channel: Channel, kind: int, data: bytes) -> None:
        if kind == Kind.GRANT and len(data) == CREDIT.size:
            channel.grant(*CREDIT.unpack(data))
        elif kind == Kind.END:
            channel.end()
        elif kind == Kind.CUT:
            channel.lose(Cut())
        else:
            raise BrokenTrunk(f"a frame of kind {kind} and {len(data)} bytes")

    def _let_in(self, number: int) -> None:
        if self._accept is None or number != self._next_number:
            raise BrokenTrunk(f"channel {number} was opened")
        channel = self._add()
        if len(self._channels) > MOST_CHANNELS or self.has_ended:
            channel.abort()
            return
        protocol = self._accept()
        channel.set_protocol(protocol)
        try:
            protocol.connection_made(channel)
        except Exception as fault:  # noqa: BLE001 - one channel's, which is not to end all others
            self.fail(channel, fault)

    def pause_writing(self) -> None:
        """The other end reads more slowly than is written."""
        self.is_full = True

    def resume_writing(self) -> None:
        """The other end has caught up: whoever waits sends, a frame each in turn."""
        self.is_full = False
        self._unread_bytes = 0
        self._serve()

    def connection_lost(self, error: Exception | None) -> None:
        """Tells all channels."""
        self._timer.cancel()
        self._here.set()
        for channel in list(self._channels.values()):
            try:
                channel.lose(error or Cut())
            except Exception as fault:  # noqa: BLE001 - the others are to be told too
                self.fail(None, fault)
        self._on_lost(self)

    # What channels use.

    def open(self) -> Channel:
        """Returns a new channel; whoever speaks over it is to be named by `set_protocol`."""
        channel = self._add()
        self.put(channel.number, Kind.OPEN)
        return channel

    def _add(self) -> Channel:
        channel = self._channels[self._next_number] = Channel(self, self._next_number)
        self._next_number += 1
        return channel

    @property
    def has_ended(self) -> bool:
        """Tells whether either end has closed it, as of now and not of when the event loop looked last."""
        return self._transport.is_closing() or bool(self._look.poll(0))

    @property
    def has_room(self) -> bool:
        """Tells whether another channel may be opened."""
        return len(self._channels) < MOST_CHANNELS and self._next_number < MOST_NUMBERS

    async def ask(self) -> None:
        """Asks whether the other end is there, and returns when it has said so, or the trunk has been lost."""
        self._here.clear()
        self.put(0, Kind.ASK)
        await self._here.wait()

    def put(self, number: int, kind: int, data: bytes | bytearray | memoryview = b"") -> None:
        """Sends a frame, together with what else is sent in this round of the event loop."""
        out = self._out
        out += HEAD.pack(number, len(data), kind)
        out += data
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._send)

    def _send(self) -> None:
        self._is_flush_due = False
        out, self._out = self._out, bytearray()
        if not out or self._transport.is_closing():
            return
        if self.is_full:
            self._unread_bytes += len(out)
            if self._unread_bytes > MOST_UNREAD_BYTES:
                self.abort()
                return
        self._transport.write(out)

    def wait(self, channel: Channel) -> None:
        """Has a channel send what waits in it, when its turn comes."""
        self._waiting[channel] = None
        self._serve()

    def _serve(self) -> None:
        while self._waiting and not self.is_full:
            channel = next(iter(self._waiting))
            del self._waiting[channel]
            try:
                if channel.send_next():
                    self._waiting[channel] = None
            except Exception as fault:  # noqa: BLE001 - one writer's, which is not to stop all others
                self.fail(channel, fault)
            if len(self._out) >= FLUSH_BYTES:
                self._send()  # which tells whether the connection below is full

    def leave(self, number: int) -> None:
        """Forgets a channel that has ended."""
        channel = self._channels.pop(number, None)
        if channel is not None:
            self._waiting.pop(channel, None)
            if not self._channels:
                self._empty_since = self._loop.time()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Returns what is known of the connection below."""
        return self._transport.get_extra_info(name, default)

    def close(self) -> None:
        """Ends it after what is still to be written."""
        self._send()
        self._transport.close()

    def abort(self) -> None:
        """Cuts it, and so all channels."""
        self._transport.abort()
