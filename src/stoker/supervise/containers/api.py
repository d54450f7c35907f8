"""Speaks docker's HTTP API over the container engine's socket; podman's service answers in the same words.

Every call has a connection of its own: podman's service ends when it was idle, and a kept connection would end with it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx

from stoker.errors import Refused, StokerError

KNOWN_API = (1, 41)  # what docker 20.10 and podman 4.0 speak
CONNECT_LIMIT_S = 5.0
REPLY_LIMIT_S = 60.0  # docker answers in milliseconds, unless it is starting a container from a cold disk
ABSENT, UNCHANGED = 404, 304
Json = Any


class ApiProblem(StokerError):
    """The container engine understood, and said no."""


class EngineSilent(StokerError):
    """The container engine does not answer."""


def choose_api_version(newest: str, oldest: str) -> str:
    """Returns the version to speak: the one known here, as far as the engine still or already has it.

    Docker 29 refuses all below 1.44, and older ones all above their own.
    """
    chosen = min(max(KNOWN_API, _numbers(oldest)), _numbers(newest) or KNOWN_API)
    return ".".join(map(str, chosen))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


class DockerApi:
    """One container engine, by the path of its socket."""

    def __init__(self, socket: str) -> None:
        self.socket = socket
        self._about: dict[str, Any] | None = None

    async def about(self) -> dict[str, Any]:
        """Returns what the engine says of itself, asked once."""
        if self._about is None:
            about = await self._ask("GET", "/version", None, {}, REPLY_LIMIT_S)
            self._about = about if isinstance(about, dict) else {}
        return self._about

    async def podman_version(self) -> tuple[int, ...] | None:
        """Returns podman's version; None for docker."""
        parts = (await self.about()).get("Components") or []
        return next((_numbers(part.get("Version", "")) for part in parts if part.get("Name") == "Podman Engine"), None)

    async def call(
        self, method: str, path: str, body: Json = None, limit_s: float = REPLY_LIMIT_S, **query: str | int
    ) -> Json:
        """Returns what the engine answers, None where it has no such thing; raises ApiProblem or EngineSilent."""
        return await self._ask(method, await self._with_version(path), body, query, limit_s)

    async def call_podman(self, path: str, limit_s: float = REPLY_LIMIT_S) -> Json:
        """Asks podman something that docker's API has no words for."""
        return await self._ask("GET", f"/v4.0.0/libpod{path}", None, {}, limit_s)

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, silence_limit_s: float | None = None, **query: str | int
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Gives an answer as it comes; raises EngineSilent where it breaks off or nothing comes for too long."""
        whole = await self._with_version(path)
        with _renaming(self.socket):
            async with self._client(silence_limit_s) as client, client.stream(method, whole, params=query) as reply:
                if reply.is_error:
                    await reply.aread()
                    raise self._problem(reply)
                yield reply.aiter_raw()

    async def _with_version(self, path: str) -> str:
        about = await self.about()
        return f"/v{choose_api_version(about.get('ApiVersion', ''), about.get('MinAPIVersion', ''))}{path}"

    async def _ask(self, method: str, path: str, body: Json, query: Mapping[str, str | int], limit_s: float) -> Json:
        with _renaming(self.socket):
            async with asyncio.timeout(limit_s), self._client(None) as client:
                reply = await client.request(method, path, json=body, params=query)
        return self._read(reply)

    def _client(self, silence_limit_s: float | None) -> httpx.AsyncClient:
        # Without certificates, which nobody asks for on a socket: loading them takes longer than the call.
        transport = httpx.AsyncHTTPTransport(uds=self.socket, verify=False)
        timeout = httpx.Timeout(silence_limit_s, connect=CONNECT_LIMIT_S)
        return httpx.AsyncClient(transport=transport, base_url="http://container-engine", timeout=timeout, trust_env=False)

    def _read(self, reply: httpx.Response) -> Json:
        if reply.status_code in (ABSENT, UNCHANGED):
            return None
        if reply.is_error:
            raise self._problem(reply)
        return _decoded(reply.content) if reply.content else {}

    def _problem(self, reply: httpx.Response) -> ApiProblem:
        return ApiProblem(f"the container engine says: {_message(reply)}", why=f"it answered so at {self.socket}")


@contextmanager
def _renaming(socket: str) -> Iterator[None]:
    """Renames what a broken socket raises, for the person at the desk."""
    try:
        yield
    except (httpx.HTTPError, httpx.StreamError, TimeoutError, OSError) as problem:
        raise silent(socket, str(problem) or "it did not answer in time") from problem


def silent(socket: str, why: str) -> StokerError:
    """Returns the error for an engine that cannot be reached: because of who asks, or because it does not run."""
    if "Permission denied" in why:
        return Refused(
            f"this user may not speak to the container engine at {socket}",
            why="the socket belongs to another user or group",
            next_step="join the group that it belongs to (`sudo usermod -aG docker $USER`, then log in again; that is as "
            "much as being root), or run podman as this user (`systemctl --user enable --now podman.socket`)",
        )
    return EngineSilent(
        f"the container engine at {socket} does not answer", why=why,
        next_step="`sudo systemctl start docker`, or `systemctl --user start podman.socket`; then try again",
    )  # fmt: skip


def _message(reply: httpx.Response) -> str:
    found = _decoded(reply.content)
    said = found.get("message") if isinstance(found, dict) else None
    return str(said or reply.text or f"HTTP status {reply.status_code}").strip()


def _decoded(content: bytes) -> Json:
    try:
        return json.loads(content)
    except ValueError:
        return {}
