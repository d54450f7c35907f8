"""HTTP to another box over its pinned link, from a thread or the command line."""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Iterator

from stoker.errors import Refused, StokerError
from stoker.gateway.pinned import MAKES_NEW, WrongCertificate, check_pin, client_tls


class PinnedConnection(http.client.HTTPSConnection):
    """Says nothing to whoever does not show the certificate whose digest begins with `pin`."""

    def __init__(self, host: str, port: int, pin: str, limit_s: float) -> None:
        super().__init__(host, port, timeout=limit_s, context=client_tls())
        self._pin = pin

    def connect(self) -> None:
        """Connects and looks at the certificate, before anything is written."""
        super().connect()
        try:
            check_pin(self.sock, self._pin)
        except WrongCertificate:
            self.close()
            raise

    @property
    def shown(self) -> bytes:
        """The certificate that was shown."""
        found: bytes | None = self.sock.getpeercert(binary_form=True)
        return found or b""


@contextlib.contextmanager
def naming(box: str, address: str) -> Iterator[None]:
    """Turns what may go wrong on the way to a box into an error for the person at the desk."""
    try:
        yield
    except WrongCertificate as problem:
        raise Refused(
            f"the box at {address} is not the one that was meant: {problem}", why="nothing was told to it",
            next_step=MAKES_NEW if box else "make sure of the address, and get a new code: `stoker boxes code` on that box",
        ) from problem  # fmt: skip
    except (OSError, http.client.HTTPException) as problem:
        raise StokerError(
            f"the box at {address} did not answer", why=str(problem) or type(problem).__name__,
            next_step="is its daemon running, with [boxes] host set, and does a firewall let its port through?",
        ) from problem  # fmt: skip
