"""A scripted engine that keeps its connections, and what it saw of each."""

from __future__ import annotations

import asyncio
import contextlib

from door_stage import Answer, Engine, json_answer


class KeptEngine(Engine):
    """Answers request after request on a connection; `uses` counts the requests on each, `open` the connections."""

    def __init__(self, *answers: Answer, stays: bool = True) -> None:
        self._answers = list(answers)
        super().__init__(self._answer_next)
        self._stays = stays
        self.uses: list[int] = []
        self.open = 0
        self.writers: list[asyncio.StreamWriter] = []

    async def _answer_next(self, writer: asyncio.StreamWriter) -> None:
        answer = self._answers.pop(0) if self._answers else json_answer(b'{"model": "m"}')
        await answer(writer)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(self.uses)
        self.uses.append(0)
        self.writers.append(writer)
        self.open += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
                self.uses[number] += 1
                self.asked.append((head, await reader.readexactly(length)))
                await self._answer_next(writer)
                if not self._stays:
                    writer.close()
        self.open -= 1
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
