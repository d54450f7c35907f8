"""Asks an engine how many tokens a text has, over the relay that carries everybody else's requests too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import msgspec

from stoker.gateway.exchange import Exchange, Headers, Request
from stoker.gateway.refusals import JSON

COUNT_LIMIT_S = 10.0
ANSWER_LIMIT_BYTES = 4 * 1024 * 1024


class Runs(Protocol):
    """A relay that was made for an exchange."""

    async def run(self) -> None:
        """Carries it to the engine."""


RelayTo = Callable[[Exchange], Runs]


class _Counted(msgspec.Struct):
    count: int | None = None  # SGLang, vLLM
    tokens: list[msgspec.Raw] | None = None  # llama.cpp has these alone


async def count_tokens(relay_to: RelayTo, model: str, texts: tuple[str, ...]) -> int | None:
    """Returns how many tokens the texts have together; None where the engine does not say."""
    counts = [await _count(relay_to, model, text) for text in texts]
    return None if None in counts else sum(count or 0 for count in counts)


async def _count(relay_to: RelayTo, model: str, text: str) -> int | None:
    # llama.cpp reads `content` and adds nothing by itself, SGLang and vLLM read `prompt`.
    body = {"model": model, "content": text, "prompt": text, "add_special_tokens": False}
    asked = _Asked(msgspec.json.encode(body))
    try:
        async with asyncio.timeout(COUNT_LIMIT_S):
            await relay_to(asked).run()
            raw = await asked.body
    except TimeoutError:
        asked.gone()
        return None
    try:
        counted = msgspec.json.decode(raw, type=_Counted)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return counted.count if counted.count is not None or counted.tokens is None else len(counted.tokens)


class _Asked(Exchange):
    """A request of our own; `body` is what came, nothing where it was no success."""

    def __init__(self, body: bytes) -> None:
        super().__init__(Request("POST", "/tokenize", b"", [JSON], body, "1.1", True), self, [])
        self.body: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._pieces = bytearray()

    def start(self, status: int, headers: Headers, length: int | None) -> None:
        """Keeps the status."""
        self.status = status

    def write(self, data: bytes) -> None:
        """Keeps a piece, unless it is absurdly long."""
        self._pieces += data
        if len(self._pieces) > ANSWER_LIMIT_BYTES:
            self.gone()
            self.abort()

    def end(self) -> None:
        """Hands over what came."""
        self._hand_over(bytes(self._pieces) if self.status == 200 else b"")

    def abort(self) -> None:
        """Hands over nothing."""
        self._hand_over(b"")

    break_off = abort

    def _hand_over(self, raw: bytes) -> None:
        self.done = True
        if not self.body.done():
            self.body.set_result(raw)

    def finish(self, keep_alive: bool) -> None:
        """Is its own wire, and so has nothing to close."""
