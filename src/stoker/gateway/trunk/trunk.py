"""One connection that carries many channels, as either end sees it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, cast

from stoker.gateway.sealed import Cut
from stoker.gateway.trunk.channel import Channel
from stoker.gateway.trunk.frames import CREDIT, DATA, HEAD, BrokenTrunk, Kind

MOST_NUMBERS = 2**31  # in a trunk's life: none is given twice
MOST_CHANNELS = 4096
FLUSH_BYTES = 64 * 1024
# Short frames are written although the other end reads nothing; who asks for so many of them is no door of ours.
MOST_UNREAD_BYTES = 4 * 1024**2
logger = logging.getLogger("stoker.gateway")


class Trunk(asyncio.Protocol):
    """Takes what comes apart by channels, and sends together what they write in one round of the event loop.

    `accept` makes the protocol of each channel that the other end opens; without it none may. A trunk that carries nothing
    for `idle_s` is closed. `on_lost` is called when it has ended.
    """

    def __init__(
        self, idle_s: float, on_lost: Callable[[Trunk], None], accept: Callable[[], asyncio.Protocol] | None = None
    ) -> None:
        self.is_full = False
        self.heard_at = 0.0
        self._idle_s, self._on_lost, self._accept = idle_s, on_lost, accept
        self._loop = asyncio.get_running_loop()
        self._channels: dict[int, Channel] = {}
        self._next_number = 0
        self._rest = b""
        self._out = bytearray()
        self._is_flush_due = False
        self._unread_bytes = 0
        self._waiting: dict[Channel, None] = {}

    # What the connection below tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps what bytes are written to."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=FLUSH_BYTES)
        self.heard_at = self._empty_since = self._loop.time()
        self._timer = self._loop.call_later(self._idle_s, self._look)

    def _look(self) -> None:
        if not self._channels and self._loop.time() - self._empty_since >= self._idle_s:
            self.close()
        else:
            self._timer = self._loop.call_later(self._idle_s, self._look)

    def data_received(self, data: bytes) -> None:
        """Hands each frame on to its channel."""
        self.heard_at = self._loop.time()
        if self._rest:
            data = self._rest + data
        at, size_bytes = 0, len(data)
        while at + HEAD.size <= size_bytes:
            number, frame_bytes, kind = HEAD.unpack_from(data, at)
            begin = at + HEAD.size
            if begin + frame_bytes > size_bytes:
                break
            at = begin + frame_bytes
            try:
                self._pass(number, kind, data[begin:at])
            except BrokenTrunk as problem:
                logger.warning("peer=%s broke a link: %s", self.get_extra_info("peername"), problem)
                self.abort()
                return
        self._rest = data[at:]

    def _pass(self, number: int, kind: int, data: bytes) -> None:
        channel = self._channels.get(number)
        if kind != DATA:
            self._obey(number, kind, data, channel)
        elif channel is not None:
            self._feed(channel, data)
        elif number >= self._next_number:
            raise BrokenTrunk(f"bytes for channel {number}, which nobody opened")

    def _feed(self, channel: Channel, data: bytes) -> None:
        try:
            channel.feed(data)
        except BrokenTrunk:
            raise
        except Exception as fault:  # noqa: BLE001 - one channel's, which is not to end all others
            self._loop.call_exception_handler({"message": "a channel's protocol failed", "exception": fault})
            channel.abort()

    def _obey(self, number: int, kind: int, data: bytes, channel: Channel | None) -> None:
        if kind == Kind.OPEN:
            self._let_in(number)
        elif channel is None and number < self._next_number:  # it was ended here while this was under way
            return
        elif channel is None:
            raise BrokenTrunk(f"a word for channel {number}, which nobody opened")
        elif kind == Kind.GRANT and len(data) == CREDIT.size:
            channel.grant(*CREDIT.unpack(data))
        elif kind == Kind.END:
            channel.end()
        elif kind == Kind.CUT:
            channel.lose(Cut())
        else:
            raise BrokenTrunk(f"a frame of kind {kind} and {len(data)} bytes")

    def _let_in(self, number: int) -> None:
        if self._accept is None or number != self._next_number or len(self._channels) >= MOST_CHANNELS:
            raise BrokenTrunk(f"channel {number} was opened")
        channel, protocol = self._add(), self._accept()
        channel.set_protocol(protocol)
        protocol.connection_made(channel)

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
        for channel in list(self._channels.values()):
            channel.lose(error or Cut())
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
    def is_usable(self) -> bool:
        """Tells whether another channel may be opened."""
        has_room = len(self._channels) < MOST_CHANNELS and self._next_number < MOST_NUMBERS
        return has_room and not self._transport.is_closing()

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
            if channel.send_next():
                self._waiting[channel] = None
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
