"""A stage whose service is brought by a request: the real door before a scripted engine and a start that the test ends."""

from __future__ import annotations

import asyncio

from door_stage import Answer, Engine, Stage, events
from stoker.errors import StokerError
from stoker.gateway.directory import Entry
from stoker.records import QueueLimits, State

TOKEN, DONE = b'data: {"model": "m", "choices": []}\n\n', b"data: [DONE]\n\n"


class Bringing(Stage):
    """`brought` ends the start, with an error or without; `asks` counts who would have it started."""

    def __init__(self, answer: Answer | None = None, wait_s: float = 600.0, filters: tuple[str, ...] = ()) -> None:
        super().__init__(Engine(answer or events(TOKEN, DONE)), filters)
        self.limits = QueueLimits(None, 64, wait_s)
        self.state = State.LOADING
        self.asks = 0
        self.waits = 0

    def entries(self) -> list[Entry]:
        [entry] = super().entries()
        if self.state is State.READY:
            return [entry._replace(on_demand=True)]
        return [entry._replace(state=self.state, endpoint=None, why="it\nloads", on_demand=True, expected_s=42.0)]

    def ask(self, service: str) -> None:
        self.asks += 1

    async def bring(self, service: str) -> None:
        self.asks += 1
        self.waits += 1
        try:
            problem = await asyncio.shield(self.brought)
        finally:
            self.waits -= 1
        if problem is not None:
            raise problem

    def come(self) -> None:
        """Lets the service be READY."""
        self.state = State.READY
        self.brought.set_result(None)

    def fail(self) -> None:
        """Lets the start fail."""
        self.brought.set_result(StokerError("the engine ended (exit code 7)", next_step="see its log"))

    async def _begin(self) -> None:
        self.brought: asyncio.Future[StokerError | None] = asyncio.get_running_loop().create_future()
