"""One request over HTTP, within strict limits, to an endpoint that may do anything.

It never raises for what the other side does: whatever came is returned, with the problem in words. No redirect is followed,
no proxy of the environment is used, no connection is kept: what was asked can be asked again with curl.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from typing import NamedTuple

import httpx

BODY_LIMIT_BYTES = 4 * 1024**2
CONNECT_LIMIT_S = 5.0
UNTRUSTED, NOBODY = "its certificate is not trusted", "nobody answers there"


class Call(NamedTuple):
    """A request; `until` tells by what came so far whether enough was heard, and then the connection is closed."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes
    limit_s: float
    until: Callable[[bytes], bool] | None = None


class Reply(NamedTuple):
    """What came back. `arrivals` are the seconds since the request, and how many bytes had come by then.

    `timed_out`: `limit_s` ended it. `left`: it was us who had heard enough.
    """

    call: Call
    status: int | None
    headers: httpx.Headers
    body: bytes
    arrivals: tuple[tuple[float, int], ...]
    took_s: float
    problem: str
    timed_out: bool
    left: bool

    def at_s(self, place: int) -> float:
        """Returns when the byte at a place of the body came."""
        return next((at for at, size in self.arrivals if size > place), self.took_s)


class Wire:
    """Sends requests, one connection each; to `https` only where it was told that it would."""

    def __init__(self, speaks_tls: bool) -> None:
        limits = httpx.Limits(max_keepalive_connections=0)
        # The default context takes $SSL_CERT_FILE, so that a certificate of one's own can be trusted. To read all of the
        # system's takes 20 ms of whoever else uses this event loop; a bare one trusts nobody.
        trust = ssl.create_default_context() if speaks_tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._client = httpx.AsyncClient(
            trust_env=False, timeout=httpx.Timeout(None, connect=CONNECT_LIMIT_S), limits=limits, verify=trust
        )

    async def send(self, call: Call) -> Reply:
        """Returns what came until the end, the limit, or the problem."""
        hearing = _Hearing(call)
        try:
            async with asyncio.timeout(call.limit_s):
                await self._hear(call, hearing)
        except TimeoutError:
            return hearing.end(self._silence(call, hearing), timed_out=True)
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            return hearing.end(_say(problem))
        return hearing.end("")

    async def _hear(self, call: Call, hearing: _Hearing) -> None:
        # Uncompressed, so that a small reply cannot grow, and so that what is kept can be read.
        headers = {"accept-encoding": "identity", **call.headers}
        async with self._client.stream(call.method, call.url, headers=headers, content=call.body or None) as reply:
            hearing.status, hearing.headers = reply.status_code, reply.headers
            async for piece in reply.aiter_raw():
                if hearing.take(piece):
                    return

    @staticmethod
    def _silence(call: Call, hearing: _Hearing) -> str:
        if hearing.status is None:
            return f"no answer began within {call.limit_s:.1f} s"
        return f"its answer had begun and was not over after {call.limit_s:.1f} s"

    async def close(self) -> None:
        """Closes the client."""
        await self._client.aclose()


class _Hearing:
    """What came until now."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._begun = time.monotonic()
        self._body = bytearray()
        self._arrivals: list[tuple[float, int]] = []
        self._left = False
        self._overflowed = False
        self.status: int | None = None
        self.headers = httpx.Headers()

    def take(self, piece: bytes) -> bool:
        """Takes what came; returns True where that is enough."""
        self._body += piece
        self._arrivals.append((time.monotonic() - self._begun, len(self._body)))
        self._overflowed = len(self._body) > BODY_LIMIT_BYTES
        self._left = self._call.until is not None and self._call.until(bytes(self._body))
        return self._overflowed or self._left

    def end(self, problem: str, *, timed_out: bool = False) -> Reply:
        if self._overflowed:
            problem = f"its answer is over {BODY_LIMIT_BYTES // 1024**2} MiB, and was read no further"
        took_s = time.monotonic() - self._begun
        body = bytes(self._body[:BODY_LIMIT_BYTES])
        return Reply(
            self._call, self.status, self.headers, body, tuple(self._arrivals), took_s, problem, timed_out, self._left
        )


def _say(problem: Exception) -> str:
    """Returns what happened in words for people; httpx tells it by kinds, and in the words of the layers below."""
    said = str(problem) or type(problem).__name__
    if "CERTIFICATE_VERIFY_FAILED" in said:
        return f"{UNTRUSTED} ({said.partition('certificate verify failed: ')[2].partition(' (_ssl')[0] or said})"
    if isinstance(problem, httpx.ConnectError | httpx.ConnectTimeout):
        return f"{NOBODY}: {said}"
    if isinstance(problem, httpx.RemoteProtocolError) and ("incomplete" in said or "without sending" in said):
        return f"it closed the connection before its answer was over: {said}"
    if isinstance(problem, httpx.ReadError | httpx.WriteError):
        return f"it broke the connection off: {said}"
    return f"what it speaks is no HTTP that clients understand: {said}"
