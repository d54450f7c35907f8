"""An endpoint's address as it is dialled: looked up once, so that no name server is part of what is measured."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from stoker import __version__
from stoker.errors import StokerError

if TYPE_CHECKING:
    import ssl

CONNECT_LIMIT_S = 5.0
PORTS = {"http": 80, "https": 443}


class Origin:
    """Where requests go: an address with or without TLS, what stands before each path, the key, and headers of all requests.

    Raises StokerError where nobody answers at the address.
    """

    def __init__(self, url: str, key: str | None = None, headers: Mapping[str, str] | None = None) -> None:
        parts = urlsplit(url)
        self.url = url
        self.host = parts.hostname or ""
        self.port = parts.port or PORTS[parts.scheme]
        self.is_tls = parts.scheme == "https"
        self._netloc = parts.netloc
        self._path = parts.path.rstrip("/")
        self._key, self._headers = key, headers or {}
        self.family, self.address = self._dial()

    def _dial(self) -> tuple[int, Any]:
        """Returns the first address that takes a connection."""
        try:
            with socket.create_connection((self.host, self.port), CONNECT_LIMIT_S) as connection:
                return connection.family, connection.getpeername()
        except OSError as problem:
            raise StokerError(
                f"nobody answers at {self.url}", why=str(problem), next_step="check the address, and that the server is up"
            ) from problem

    @property
    def is_here(self) -> bool:
        """Tells whether it is an address of this machine's own."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.")

    @cached_property
    def tls(self) -> ssl.SSLContext | None:
        """What makes its connections private; None where they are not."""
        if not self.is_tls:
            return None
        import ssl

        return ssl.create_default_context()  # it takes $SSL_CERT_FILE, so that a certificate of one's own can be trusted

    def request(self, method: str, path: str, body: bytes = b"") -> bytes:
        """Returns a request as it is written; compressed replies are refused, since they come in lumps."""
        lines = [
            f"{method} {self._path}{path} HTTP/1.1",
            f"host: {self._netloc}",
            f"user-agent: stoker-bench/{__version__}",
            "accept-encoding: identity",
            *([f"authorization: Bearer {self._key}"] if self._key else []),
            *(f"{name}: {value}" for name, value in self._headers.items()),
            *(["content-type: application/json", f"content-length: {len(body)}"] if method == "POST" else []),
        ]
        return "\r\n".join([*lines, "", ""]).encode() + body
