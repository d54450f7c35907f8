"""Another box as this door sees it: follows what that box says of itself, and knows when it says nothing."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

import msgspec

from stoker.errors import StokerError
from stoker.gateway.chain import chain_of
from stoker.gateway.directory import Entry
from stoker.gateway.pinned import MAKES_NEW, WrongCertificate, check_pin, client_tls
from stoker.records import Endpoint, QueueLimits
from stoker.records.boxes import BoxHealth, BoxService, BoxWord, Link

# A word comes every half second; a box that is not heard for three of them is away.
SILENT_S, CONNECT_S = 1.5, 1.0
RETRY_S, LATE_RETRY_S = 0.5, 5.0
LINE_LIMIT_BYTES = 4 * 2**20
RETRY_AWAY_S = 5
NEVER_HEARD = "it was not heard yet"


class _Unheard(Exception):
    """The box cannot be followed now; `is_lasting`: only a person can change that."""

    def __init__(self, why: str, is_lasting: bool = False) -> None:
        super().__init__(why)
        self.is_lasting = is_lasting


class RemoteBox:
    """One box; `on_change` is called when it comes, goes or serves something else, `on_away` with why it went."""

    def __init__(
        self, link: Link, limits: QueueLimits, services: tuple[BoxService, ...], on_change: Callable[[RemoteBox], None],
        on_away: Callable[[RemoteBox], None],
    ) -> None:  # fmt: skip
        self.link = link
        self.is_here = False
        self.why = NEVER_HEARD
        self.since = time.time()
        self.services: tuple[BoxService, ...] = ()
        self.entries: dict[str, Entry] = {}
        self.tokens: dict[str, int] = {}
        self.health: BoxHealth | None = None
        self._limits = limits
        self._on_change, self._on_away = on_change, on_away
        self._take(services)

    async def follow(self) -> None:
        """Follows the box until cancelled, through all that happens to it."""
        while True:
            try:
                await self._listen()
            except _Unheard as problem:
                self._gone(str(problem))
                await asyncio.sleep(LATE_RETRY_S if problem.is_lasting else RETRY_S)

    async def _listen(self) -> None:
        link, writer = self.link, None
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, writer = await asyncio.open_connection(
                    link.host, link.port, ssl=client_tls(), server_hostname=link.host, limit=LINE_LIMIT_BYTES
                )
                check_pin(writer.get_extra_info("ssl_object"), link.pin)
                # HTTP/1.0: the body comes as it is, until the connection ends.
                head = f"GET /words HTTP/1.0\r\nhost: {link.host}\r\nauthorization: Bearer {link.key}\r\n\r\n"
                writer.write(head.encode())
                await self._read_head(reader)
            while True:
                async with asyncio.timeout(SILENT_S):
                    line = await reader.readline()
                self._hear(line)
        except WrongCertificate as problem:
            raise _Unheard(f"{problem}; {MAKES_NEW}", is_lasting=True) from problem
        except TimeoutError as problem:
            raise _Unheard(f"nothing was heard of it for {SILENT_S:g} s") from problem
        except (OSError, ValueError, asyncio.IncompleteReadError) as problem:
            raise _Unheard(str(problem) or type(problem).__name__) from problem
        finally:
            if writer is not None:
                writer.transport.abort()

    async def _read_head(self, reader: asyncio.StreamReader) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        status = head.split(b" ", 2)[1] if head.count(b" ") > 1 else b""
        if status == b"401":
            raise _Unheard("it knows no link of this door any more; `stoker boxes add` joins it anew", is_lasting=True)
        if status != b"200":
            raise _Unheard(f"it answered {status.decode('latin-1') or 'no HTTP'}")

    def _hear(self, line: bytes) -> None:
        if not line.endswith(b"\n"):
            raise _Unheard("it closed the connection")
        try:
            word = msgspec.json.decode(line, type=BoxWord)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
            why = f"what it says cannot be read ({problem}); do both boxes have the same version of Stoker?"
            raise _Unheard(why, is_lasting=True) from problem
        self.tokens, self.health = word.tokens, word.health
        if word.services is not None or not self.is_here:
            if not self.is_here:
                self.is_here, self.since, self.why = True, time.time(), ""
            self._take(self.services if word.services is None else word.services)
            self._on_change(self)

    def _gone(self, why: str) -> None:
        was_here, was_why = self.is_here, self.why
        if why == was_why and not was_here:
            return
        self.why = why
        if was_here:
            self.is_here, self.since, self.tokens, self.health = False, time.time(), {}, None
        self._take(self.services)
        self._on_change(self)
        if was_here:
            self._on_away(self)

    def _take(self, services: tuple[BoxService, ...]) -> None:
        self.services, before = services, self.entries
        self.entries = {}
        for one in services:
            entry = self._entry(one, before.get(f"{one.service}@{self.link.name}"))
            self.entries[entry.service] = entry

    def _entry(self, one: BoxService, before: Entry | None) -> Entry:
        link = self.link
        endpoint = self._endpoint(one) if one.is_ready and self.is_here else None
        if before is not None and before.endpoint == endpoint:
            endpoint = before.endpoint  # the same object, so that what was made of it is used again
        since = time.time() - one.age_s  # by this box's clock, whatever that one's says
        away = (
            ""
            if self.is_here
            else f"which is away since {time.strftime('%H:%M:%S', time.localtime(self.since))}: {self.why}"
        )
        return Entry(
            f"{one.service}@{link.name}", one.model, one.state, since, one.why, one.context_tokens, endpoint,
            one.retry_after_s if self.is_here else RETRY_AWAY_S, self._limits, revision=one.revision, plan_id=one.plan_id,
            abilities=one.abilities, box=link.name, away=away,
        )  # fmt: skip

    def _endpoint(self, one: BoxService) -> Endpoint:
        link, changes = self.link, ""
        with contextlib.suppress(StokerError):  # a filter that only the other box's version knows
            changes = b", ".join(value for _, value in chain_of(one.filters).headers).decode()
        return Endpoint(
            f"{one.service}@{link.name}", one.model, one.revision or "", one.plan_id or "", link.host, link.port, link.key,
            reuses_connections=False,  # each request has a channel of its own in the one connection
            box=link.name, pin=link.pin, changes=changes,
        )  # fmt: skip
