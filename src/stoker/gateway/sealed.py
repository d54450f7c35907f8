"""Connections to other boxes: TLS opened in one call for each read, over a plain connection that does all waiting.

The event loop's own TLS holds 256 KiB for each connection, and takes one that was cut for one that ended (decisions/0042).
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import Any, cast

from stoker.gateway.pinned import check_pin, client_tls

RECORD_BYTES = 16 * 1024  # TLS seals no more at once (RFC 8446, 5.1)
WRITE_BYTES = 64 * 1024  # of a large body, so that it is not in memory once more than sealed
LINGER_S = 5.0
NOBODY = asyncio.Protocol()


class Cut(ConnectionResetError):
    """The connection has ended and TLS's own word of it is lacking, so that nobody knows who ended it."""

    def __init__(self) -> None:
        super().__init__("its connection was cut")


async def open_sealed(host: str, port: int, pin: str, protocol: str = "") -> Sealed:
    """Connects to the box that has the pinned certificate, and offers to speak that protocol over TLS (ALPN).

    Raises OSError where that is not who answers.
    """
    loop = asyncio.get_running_loop()
    plain, opening = await loop.create_connection(lambda: _Opening(loop, host, protocol), host, port)
    try:
        sealed = await opening.sealed
        check_pin(sealed.get_extra_info("ssl_object"), pin)
    except BaseException:
        plain.abort()
        raise
    if sealed.is_closing():  # since it was opened, and nobody was told
        raise Cut
    return sealed


class _Opening(asyncio.Protocol):
    """Shakes hands."""

    def __init__(self, loop: asyncio.AbstractEventLoop, host: str, protocol: str) -> None:
        self.sealed: asyncio.Future[Sealed] = loop.create_future()
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = client_tls(protocol).wrap_bio(self._incoming, self._outgoing, server_hostname=host)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._plain = cast(asyncio.Transport, transport)
        self._shake()

    def data_received(self, data: bytes) -> None:
        self._incoming.write(data)
        self._shake()

    def _shake(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._plain.write(self._outgoing.read())
        except ssl.SSLError as problem:
            self._fail(problem)
        else:
            self._plain.write(self._outgoing.read())
            if not self.sealed.done():
                self.sealed.set_result(Sealed(self._plain, self._tls, self._incoming, self._outgoing))

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(error or Cut())

    def _fail(self, problem: Exception) -> None:
        if not self.sealed.done():  # whoever waited may have given up
            self.sealed.set_exception(problem.with_traceback(None))  # which knows this, and this the future


class Sealed(asyncio.Transport, asyncio.Protocol):
    """The transport of whoever speaks with the box, and the protocol of the connection below."""

    def __init__(
        self, plain: asyncio.Transport, tls: ssl.SSLObject, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO
    ) -> None:
        super().__init__()
        self._plain, self._tls, self._incoming, self._outgoing = plain, tls, incoming, outgoing
        self._put, self._read, self._pending = incoming.write, tls.read, tls.pending
        self._is_ended = False  # as TLS says it, or by us
        self._fault: Exception | None = None
        self.set_protocol(NOBODY)
        plain.set_protocol(self)

    # What the connection below tells.

    def data_received(self, data: bytes) -> None:
        """Tells what came, in one piece."""
        self._put(data)
        try:
            # No more is asked for than came: what is kept of a piece shall lie in no more memory than it needs.
            opened = self._read(len(data))
            if self._incoming.pending or len(opened) == len(data):
                opened += self._read_rest()
        except ssl.SSLWantReadError:  # half a record, or one that is for TLS alone
            return
        except ssl.SSLError as problem:
            self._fail(problem)
            return
        if opened:
            self._tell(opened)
        else:
            self._is_ended = True
        if self._is_ended:
            self.close()

    def _read_rest(self) -> bytes:
        pieces = []
        while self._incoming.pending or self._pending():
            try:
                pieces.append(self._read(RECORD_BYTES))
            except ssl.SSLWantReadError:
                break
            if not pieces[-1]:
                self._is_ended = True
                break
        return b"".join(pieces)

    def _fail(self, problem: ssl.SSLError) -> None:
        self._fault = problem.with_traceback(None)  # which knows this
        self._plain.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """Tells that no more comes; without an error only where TLS has said so, or where it was ended here."""
        told, fault = self._told, error or self._fault
        self.set_protocol(NOBODY)
        told.connection_lost(None if self._is_ended else fault or Cut())

    def pause_writing(self) -> None:
        """The box reads more slowly than is written."""
        self._told.pause_writing()

    def resume_writing(self) -> None:
        """The box has caught up."""
        self._told.resume_writing()

    # What whoever speaks with the box uses.

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Tells it what comes from now on."""
        self._told = cast(asyncio.Protocol, protocol)
        self._tell = self._told.data_received

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Returns what is known of the connection."""
        return self._tls if name == "ssl_object" else self._plain.get_extra_info(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Seals and sends."""
        if self._plain.is_closing():
            return
        whole = memoryview(data)
        for at in range(0, len(whole), WRITE_BYTES):
            self._tls.write(whole[at : at + WRITE_BYTES])
            self._plain.write(self._outgoing.read())

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Says how much may wait to be sent before the writer is told to pause."""
        self._plain.set_write_buffer_limits(high, low)

    def pause_reading(self) -> None:
        """Reads no more until `resume_reading`."""
        self._plain.pause_reading()

    def resume_reading(self) -> None:
        """Reads on."""
        self._plain.resume_reading()

    def is_closing(self) -> bool:
        """Tells whether it was ended, or has."""
        return self._plain.is_closing()

    def close(self) -> None:
        """Says in TLS that this is the end, and ends once all is sent."""
        if not self._plain.is_closing():
            self._is_ended = True
            with suppress(ssl.SSLError):  # the box's own word of it is not waited for
                self._tls.unwrap()
            self._plain.write(self._outgoing.read())
            if self._plain.get_write_buffer_size():  # a box that reads no more must not keep it
                asyncio.get_running_loop().call_later(LINGER_S, self._plain.abort)
            self._plain.close()

    def abort(self) -> None:
        """Cuts the connection."""
        self._is_ended = True
        self._plain.abort()
