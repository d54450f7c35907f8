"""TLS over bytes that others carry, so that the kernel's stamps of what carried them are kept. Imported late."""

from __future__ import annotations

import ssl


class Tls:
    """One side of a TLS connection."""

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._in, self._out, server_hostname=host)

    def take(self, data: bytes) -> None:
        """Takes what came over the wire."""
        self._in.write(data)

    def greet(self) -> bool:
        """Goes on greeting; returns True once that is done. Raises ssl.SSLError."""
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def outgoing(self) -> bytes:
        """Returns what is to go over the wire."""
        return self._out.read()

    def seal(self, data: bytes) -> bytes:
        """Returns data as it goes over the wire."""
        self._object.write(data)
        return self._out.read()

    def opened(self) -> tuple[bytes, bool]:
        """Returns what can be read by now, and whether the other side has said that it is all."""
        pieces: list[bytes] = []
        while True:
            try:
                piece = self._object.read(65536)
            except ssl.SSLWantReadError:
                return b"".join(pieces), False
            except ssl.SSLZeroReturnError:
                piece = b""
            if not piece:
                return b"".join(pieces), True
            pieces.append(piece)
