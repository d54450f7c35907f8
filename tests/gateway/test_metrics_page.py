"""`/metrics` at the real door: what it waits for holds nobody else up."""

from __future__ import annotations

import asyncio

from door_stage import Engine, Stage, act, json_answer, until


def test_who_asks_for_metrics_waits_for_the_look_at_memory_and_others_do_not() -> None:
    stage = Stage(Engine(json_answer(b'{"model": "m"}')), ())

    async def story(_: Stage) -> None:
        looked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        looks: list[int] = []

        async def look() -> None:
            looks.append(1)
            await asyncio.shield(looked)

        stage.metrics._look = look
        asked = await stage.request(b"GET", b"/metrics")
        await until(lambda: bool(looks))
        assert (await (await stage.chat()).read_answer()).status == 200
        gone = await stage.request(b"GET", b"/metrics")
        await until(lambda: len(looks) == 2)
        gone.writer.transport.abort()
        looked.set_result(None)
        assert b"stoker_gateway_requests_total" in (await asked.read_answer()).body

    act(stage, story)
