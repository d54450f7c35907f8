"""One connection, never blocking: opened, greeted where it is TLS, written to, and read with stamps."""

from __future__ import annotations

import errno
import select
import socket
from typing import TYPE_CHECKING

from stoker.bench.origin import Origin
from stoker.bench.stamps import Read, ask_for_stamps, read_event, read_stamped

if TYPE_CHECKING:
    from stoker.bench.tls import Tls

READING, WRITING = select.EPOLLIN | select.EPOLLRDHUP, select.EPOLLOUT


class Line:
    """A connection to an origin; `is_open` once requests may be written, `is_busy` while one is under way on it.

    `is_used`: it carried a reply already. `has_stamps`: the kernel tells when something came. `number` is epoll's for it.
    """

    def __init__(self, origin: Origin, offset_ns: int) -> None:
        self.socket = socket.socket(origin.family, socket.SOCK_STREAM)
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.has_stamps = ask_for_stamps(self.socket)
        self.number = self.socket.fileno()
        self.is_open = self.is_busy = self.is_used = False
        self._offset_ns = offset_ns
        self._unsent = memoryview(b"")
        self._tls = _make_tls(origin)
        self._read = read_event if self._tls is None else read_stamped  # within TLS nobody sees where an event ends
        problem = self.socket.connect_ex(origin.address)
        if problem not in (0, errno.EINPROGRESS):
            raise OSError(problem, errno.errorcode.get(problem, ""))

    @property
    def wants(self) -> int:
        """What epoll shall tell of it."""
        return READING | WRITING if self._unsent or not self.is_open else READING

    @property
    def has_unsent(self) -> bool:
        """Tells whether the kernel has not taken all that was written."""
        return bool(self._unsent)

    def go_on_opening(self) -> None:
        """Does what can be done now to open it; raises OSError, and so ssl.SSLError."""
        problem = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if problem:
            raise OSError(problem, errno.errorcode.get(problem, ""))
        if self._tls is None:
            self.is_open = True
            return
        self._tls.take(self._receive_raw())
        self.is_open = self._tls.greet()
        self._send_raw(self._tls.outgoing())

    def _receive_raw(self) -> bytes:
        try:
            data = self.socket.recv(65536)
        except BlockingIOError:
            return b""
        if not data:
            raise ConnectionResetError("it closed the connection while greeting")
        return data

    def send(self, data: bytes) -> None:
        """Writes, now as much as the kernel takes, the rest by `flush`; raises OSError."""
        self._send_raw(self._tls.seal(data) if self._tls else data)

    def _send_raw(self, data: bytes) -> None:
        self._unsent = memoryview(bytes(self._unsent) + data) if self._unsent else memoryview(data)
        self.flush()

    def flush(self) -> None:
        """Writes what the kernel did not take before; raises OSError."""
        while self._unsent:
            try:
                count = self.socket.send(self._unsent)
            except BlockingIOError:
                return
            self._unsent = self._unsent[count:]

    def receive(self, not_before_s: float) -> Read | None:
        """Returns what came, empty at the end; None where there is nothing to see yet. Raises OSError."""
        try:
            read = self._read(self.socket, self._offset_ns, not_before_s)
        except BlockingIOError:
            return None
        if self._tls is None or not read.data:
            return read
        self._tls.take(read.data)
        plain, is_over = self._tls.opened()
        return read._replace(data=plain) if plain or is_over else None

    def close(self) -> None:
        """Closes it without a farewell."""
        self.socket.close()


def _make_tls(origin: Origin) -> Tls | None:
    if origin.tls is None:
        return None
    from stoker.bench.tls import Tls  # its import costs more than all the rest of this room

    return Tls(origin.tls, origin.host)
