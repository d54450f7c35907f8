"""How many tokens a request is taken for, at the real door: by its text, what it may write, and never more than fits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from door_stage import HeldEngine, Stage, act
from stoker.gateway.directory import Entry
from stoker.records import QueueLimits

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 400_000}}
SEEN = {"messages": [{"role": "user", "content": [PICTURE, PICTURE]}]}
TEXT = {"messages": [{"role": "user", "content": "b" * 40_000}]}
RUNS, REFUSED = 200, 429


class Small(Stage):
    """A service whose cache holds few tokens, and in whose line nobody waits; `context` is its model's."""

    def __init__(self, tokens: int, context: int | None = None) -> None:
        self.held = HeldEngine()
        super().__init__(self.held, ())
        self.limits = QueueLimits(None, 0, 0.0, tokens)
        self._context = context

    def entries(self) -> list[Entry]:
        return [entry._replace(context_tokens=self._context) for entry in super().entries()]


def second_beside_first(stage: Small, first: dict[str, Any], second: dict[str, Any]) -> int:
    """Returns the status that a request gets while another runs."""
    statuses: list[int] = []

    async def story(_: Stage) -> None:
        running = await stage.chat(tag="1", **first)
        gate = await stage.held.next()
        client = await stage.chat(tag="2", **second)
        answered, came = asyncio.ensure_future(client.read_answer()), asyncio.ensure_future(stage.held.next())
        await asyncio.wait((answered, came), return_when=asyncio.FIRST_COMPLETED)
        if came.done():
            came.result().set()
        statuses.append((await answered).status)
        came.cancel()
        gate.set()
        assert (await running.read_answer()).status == RUNS

    act(stage, story)
    return statuses[0]


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [
        ({}, {}, RUNS),
        ({"max_tokens": 6000}, {"max_tokens": 6000}, RUNS),  # of each 4096 count
        ({"max_tokens": 4000}, {"max_tokens": 4000, **TEXT}, REFUSED),
        (TEXT, {}, RUNS),  # more than there is room for, alone
        (TEXT, {"max_tokens": 1}, REFUSED),
        (SEEN, SEEN, RUNS),  # their letters would be 200,000 tokens each
        ({"max_tokens": "many"}, {"max_tokens": -5}, RUNS),
    ],
)  # fmt: skip
def test_a_request_runs_where_the_tokens_of_all_fit_or_it_is_alone(
    first: dict[str, Any], second: dict[str, Any], status: int
) -> None:
    limit = 9000 if first is not TEXT or second else 11_000
    assert second_beside_first(Small(limit), first, second) == status


@pytest.mark.parametrize(("context", "status"), [(4000, RUNS), (None, REFUSED)])
def test_no_request_counts_for_more_than_the_models_context(context: int | None, status: int) -> None:
    assert second_beside_first(Small(9000, context), TEXT, {"max_tokens": 4000}) == status


def test_the_refusal_says_how_many_are_in_flight() -> None:
    stage = Small(5000)

    async def story(_: Stage) -> None:
        running = await stage.chat(tag="1", max_tokens=4000)
        gate = await stage.held.next()
        refused = await (await stage.chat(tag="2", max_tokens=4000)).read_answer()
        assert (refused.status, refused.code) == (REFUSED, "queue_full")
        assert "with about 40" in refused.json()["error"]["message"]
        gate.set()
        assert (await running.read_answer()).status == RUNS

    act(stage, story)
