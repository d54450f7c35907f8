"""One connection of many that share a trunk: a transport like any other for whoever speaks over it."""

from __future__ import annotations

import asyncio
from collections import deque
from enum import IntEnum
from typing import Any, Protocol, cast

from stoker.gateway.sealed import LINGER_S, NOBODY
from stoker.gateway.trunk.frames import CREDIT, DATA, FRAME_BYTES, WINDOW_BYTES, BrokenTrunk, Kind

WRITE_BUFFER_BYTES = 64 * 1024


class Stage(IntEnum):
    """How far a channel is: it was closed and waits to send the rest, has said its END, or nothing is left to be said."""

    OPEN = 0
    CLOSING = 1
    ENDED = 2
    OVER = 3


class Carrier(Protocol):
    """What a channel needs of its trunk."""

    is_full: bool

    @property
    def has_ended(self) -> bool:
        """Tells whether its other end has, as of now and not of when the event loop looked last."""

    def fail(self, channel: Channel, fault: Exception) -> None:
        """Ends a channel whose protocol failed."""

    def put(self, number: int, kind: int, data: bytes | bytearray | memoryview = b"") -> None:
        """Sends a frame."""

    def wait(self, channel: Channel) -> None:
        """Calls the channel's `send_next` once there is room."""

    def leave(self, number: int) -> None:
        """Forgets a channel that has ended."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Returns what is known of the connection below."""


class Channel(asyncio.Transport):
    """What is written goes into the trunk as far as the other end has granted room; the rest waits here."""

    def __init__(self, trunk: Carrier, number: int) -> None:
        super().__init__()
        self.number = number
        self._trunk = trunk
        self._credit_bytes = WINDOW_BYTES
        self._waiting: deque[memoryview] = deque()
        self._waiting_bytes = 0
        self._high_bytes = WRITE_BUFFER_BYTES
        self._is_writer_paused = False
        self._taken_bytes = 0  # and not granted again yet
        self._held: deque[bytes] = deque()  # came while nobody reads
        self._held_bytes = 0
        self._is_reading = self._is_flowing = True  # the latter: and nothing that came before is held
        self._is_other_ended = False
        self._stage = Stage.OPEN
        self.set_protocol(NOBODY)

    # What its trunk tells.

    def feed(self, data: bytes) -> None:
        """Tells what came, or holds it while nobody reads; raises BrokenTrunk for more than was granted, or after an end."""
        if self._is_flowing:
            self._tell(data)
            self._take(len(data))
            return
        self._held.append(data)
        self._held_bytes += len(data)
        if self._held_bytes > WINDOW_BYTES or self._is_other_ended:
            raise BrokenTrunk("more came than was granted, or after an end")

    def _take(self, taken_bytes: int) -> None:
        self._taken_bytes += taken_bytes
        if self._taken_bytes >= WINDOW_BYTES // 2 and self._stage < Stage.ENDED:
            self._trunk.put(self.number, Kind.GRANT, CREDIT.pack(self._taken_bytes))
            self._taken_bytes = 0

    def grant(self, room_bytes: int) -> None:
        """Learns that the other end has room for so much more."""
        self._credit_bytes += room_bytes
        self._hurry()

    def end(self) -> None:
        """Learns that the other end has sent its last."""
        self._is_other_ended = True
        if not self._held:
            self.lose(None)

    def lose(self, error: Exception | None) -> None:
        """Tells that no more comes: without an error only where an end was said."""
        told = self._told
        self._let_go(Stage.OVER)
        told.connection_lost(error)

    def fail(self, fault: Exception) -> None:
        """Ends it since its protocol failed, which is told so."""
        if self._stage < Stage.ENDED:
            self._trunk.put(self.number, Kind.CUT)
            self.lose(fault)

    def _let_go(self, stage: Stage) -> None:
        self._stage = stage
        self._trunk.leave(self.number)
        self._waiting.clear()
        self._held.clear()
        self._waiting_bytes = self._held_bytes = 0
        self.set_protocol(NOBODY)

    # What whoever speaks over it uses.

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Tells it what comes from now on."""
        self._told = cast(asyncio.Protocol, protocol)
        self._tell = self._told.data_received

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Returns what is known of the connection below, whose socket is not its own."""
        return default if name == "socket" else self._trunk.get_extra_info(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Sends, as far as there is room; what is written after the end is lost."""
        size_bytes = len(data)
        if self._stage or not size_bytes:
            return
        if not self._waiting and size_bytes <= self._credit_bytes and size_bytes <= FRAME_BYTES and not self._trunk.is_full:
            self._credit_bytes -= size_bytes
            self._trunk.put(self.number, DATA, data)
        else:
            self._waiting.append(memoryview(data))
            self._waiting_bytes += size_bytes
            self._hurry()

    def _hurry(self) -> None:
        if self._waiting and self._credit_bytes:
            self._trunk.wait(self)
        if self._waiting_bytes > self._high_bytes and not self._is_writer_paused:
            self._is_writer_paused = True
            self._told.pause_writing()

    def send_next(self) -> bool:
        """Sends one frame of what waits; returns whether it could send another."""
        if not self._waiting or not self._credit_bytes:
            return False
        first = self._waiting.popleft()
        size_bytes = min(len(first), self._credit_bytes, FRAME_BYTES)
        if size_bytes < len(first):
            self._waiting.appendleft(first[size_bytes:])
        self._credit_bytes -= size_bytes
        self._waiting_bytes -= size_bytes
        self._trunk.put(self.number, DATA, first[:size_bytes])
        if self._stage and not self._waiting:
            self._say_end()
        elif self._is_writer_paused and self._waiting_bytes <= self._high_bytes // 4:
            self._is_writer_paused = False
            self._told.resume_writing()
        return bool(self._waiting and self._credit_bytes)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Says how much may wait to be sent before the writer is told to pause."""
        self._high_bytes = WRITE_BUFFER_BYTES if high is None else high

    def get_write_buffer_size(self) -> int:
        """Returns how many bytes wait."""
        return self._waiting_bytes

    def can_write_eof(self) -> bool:
        """An end is one of both ways."""
        return False

    def pause_reading(self) -> None:
        """Holds what comes until `resume_reading`."""
        self._is_reading = self._is_flowing = False

    def resume_reading(self) -> None:
        """Tells what was held, and what comes."""
        if not self._is_reading:
            self._is_reading = True
            asyncio.get_running_loop().call_soon(self._catch_up)

    def _catch_up(self) -> None:
        try:
            self._tell_held()
        except Exception as fault:  # noqa: BLE001 - whatever it is, it ends this channel alone
            self._trunk.fail(self, fault)

    def _tell_held(self) -> None:
        while self._held and self._is_reading:
            data = self._held.popleft()
            self._held_bytes -= len(data)
            self._tell(data)
            self._take(len(data))
        if self._held:
            return
        self._is_flowing = self._is_reading
        if self._is_other_ended and self._stage < Stage.ENDED:
            self.lose(None)

    def is_closing(self) -> bool:
        """Tells whether it was ended, or has."""
        return bool(self._stage) or self._trunk.has_ended

    def close(self) -> None:
        """Ends once all is sent; nothing that comes is told any more."""
        if self._stage:
            return
        self._stage = Stage.CLOSING
        self._tell = NOBODY.data_received
        self.resume_reading()
        if self._waiting:
            self._linger(self._waiting_bytes)
        else:
            self._say_end()

    def _linger(self, left_bytes: int) -> None:
        asyncio.get_running_loop().call_later(LINGER_S, self._abort_unread, left_bytes)

    def _abort_unread(self, left_bytes: int) -> None:
        """Ends a close that another end holds up which reads no more; one that reads slowly gets all of it."""
        if self._stage is Stage.CLOSING and self._waiting_bytes < left_bytes:
            self._linger(self._waiting_bytes)
        else:
            self.abort()

    def _say_end(self) -> None:
        self._trunk.put(self.number, Kind.END)
        self._end_here(Stage.ENDED)

    def abort(self) -> None:
        """Ends at once, so that the other end sees that what it got is not whole; also a close that it does not heed."""
        if self._stage is Stage.OVER:
            return
        self._trunk.put(self.number, Kind.CUT)
        if self._stage is Stage.ENDED:
            self._stage = Stage.OVER
        else:
            self._end_here(Stage.OVER)

    def _end_here(self, stage: Stage) -> None:
        told = self._told
        self._let_go(stage)
        asyncio.get_running_loop().call_soon(told.connection_lost, None)
