"""Tells of alerts: webhooks, ntfy, a command. Each has a line of its own, so that one that hangs keeps no other waiting."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import msgspec

from stoker.errors import StokerError
from stoker.records.watching import Alert, WatchSettings

MOST_WAITING = 100
TRIES = 3
PAUSE_S = 2.0
ORDER = ("info", "warning", "critical")
NTFY_PRIORITY = {"info": "2", "warning": "4", "critical": "5"}
Send = Callable[[Alert], Awaitable[None]]
logger = logging.getLogger("stoker.watch")


class Line:
    """One who is told, by a name without secrets; `lost` counts what could not be told."""

    def __init__(self, name: str, send: Send) -> None:
        self.name = name
        self.lost = 0
        self.fault = ""
        self._send = send
        self._waiting: deque[Alert] = deque()
        self._is_new = asyncio.Event()

    def put(self, alert: Alert) -> None:
        """Takes an alert; the oldest is dropped where too many wait."""
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.popleft()
            self.lost += 1
        self._waiting.append(alert)
        self._is_new.set()

    async def run(self) -> None:
        """Tells one after the other until cancelled."""
        while True:
            await self._is_new.wait()
            self._is_new.clear()
            while self._waiting:
                await self._tell(self._waiting.popleft())

    async def _tell(self, alert: Alert) -> None:
        for number in range(TRIES):
            try:
                await self._send(alert)
            except StokerError as problem:
                self.fault = problem.what
                logger.warning("alert=%s was not told to %s: %s", alert.id, self.name, problem.what)
                await asyncio.sleep(PAUSE_S * (number + 1) if number + 1 < TRIES else 0)
            else:
                self.fault = ""
                return
        self.lost += 1


class Notices:
    """All who are told of alerts; `least` is the least severity that they want to hear of."""

    def __init__(self, settings: WatchSettings) -> None:
        self._settings = settings
        self._client: Any = None
        sends = [(f"webhook {urlsplit(one).hostname}", self._to_webhook(one)) for one in settings.webhooks]
        if settings.ntfy is not None:
            sends.append((f"ntfy {urlsplit(settings.ntfy).hostname}", self._to_ntfy(settings.ntfy)))
        if settings.command:
            sends.append((f"command {settings.command[0]}", self._to_command))
        self.lines = tuple(Line(name, send) for name, send in sends)

    async def run(self) -> None:
        """Tells until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for line in self.lines:
                tasks.create_task(line.run())

    async def close(self) -> None:
        """Closes connections."""
        if self._client is not None:
            await self._client.aclose()

    def tell(self, alert: Alert) -> None:
        """Hands an alert on, unless it is silenced or nobody wants to hear of it; never waits."""
        if alert.silenced_until is None and ORDER.index(alert.severity) >= ORDER.index(self._settings.least):
            for line in self.lines:
                line.put(alert)

    def lost(self) -> tuple[str, ...]:
        """Says who could not be told."""
        return tuple(f"{one.lost} alerts were not told to {one.name}: {one.fault}" for one in self.lines if one.lost)

    def _to_webhook(self, address: str) -> Send:
        async def send(alert: Alert) -> None:
            await self._post(address, msgspec.json.encode(alert), {"content-type": "application/json"})

        return send

    def _to_ntfy(self, address: str) -> Send:
        async def send(alert: Alert) -> None:
            title = f"{'Over: ' if alert.state == 'resolved' else ''}{alert.title}"
            # Headers are Latin-1; a title is our own words and a service's name, which is ASCII.
            headers = {"title": title.encode("ascii", "replace").decode(), "priority": NTFY_PRIORITY[alert.severity]}
            await self._post(address, f"{alert.why}\n{alert.fix}".encode(), headers)

        return send

    async def _to_command(self, alert: Alert) -> None:
        from stoker.supervise.notice import run_notice

        await asyncio.to_thread(
            run_notice, self._settings.command, msgspec.json.encode(alert), self._settings.notice_limit_s
        )

    async def _post(self, address: str, body: bytes, headers: dict[str, str]) -> None:
        """Posts; raises StokerError, whose words do not name the address: it may hold a secret."""
        import httpx

        limit_s = self._settings.notice_limit_s
        try:
            if self._client is None:  # certificates take megabytes: who is told nothing does not pay for them
                self._client = httpx.AsyncClient()
            ask = self._client.stream("POST", address, content=body, headers=headers)
            async with asyncio.timeout(limit_s), ask as reply:
                status = reply.status_code  # what it says does not matter, however much it is
        except TimeoutError as problem:
            raise StokerError(f"it did not answer within {limit_s:g} s (notice_limit_s)") from problem
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            raise StokerError(f"it could not be asked ({type(problem).__name__})") from problem
        if status >= httpx.codes.BAD_REQUEST:
            raise StokerError(f"it answered HTTP {status}")
