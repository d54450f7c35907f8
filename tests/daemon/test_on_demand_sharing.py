"""One start for all who ask: who waits, who leaves, and who hears how it went. The way up is scripted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop

from stoker.config import parse_config
from stoker.errors import Refused, StokerError
from stoker.flows.menu import Menu
from stoker.flows.on_demand import OnDemand

MENU = {"service": {"a": {"model": "/a.gguf", "on_demand": True}}}
LIMIT_S = 20.0


class GatedWay:
    """Brings a service up when its gate opens, or fails then."""

    def __init__(self, menu: Menu) -> None:
        self.menu = menu
        self.gate = asyncio.Event()
        self.began = 0
        self.up: set[str] = set()
        self.fails: Exception | None = None
        self.holds: Refused | None = None

    def is_up(self, service: str) -> bool:
        return service in self.up

    def check(self, service: str) -> None:
        if self.holds is not None:
            raise self.holds

    async def bring(self, service: str, say: Callable[[str], None]) -> None:
        self.began += 1
        say("its gate")
        await self.gate.wait()
        if self.fails is not None:
            raise self.fails
        self.up.add(service)


Story = Callable[[OnDemand, GatedWay, asyncio.TaskGroup], Awaitable[None]]


def play(story: Story, file: Path = Path("/nonexistent")) -> None:
    """Plays a story with one service that requests start."""

    async def run() -> None:
        way = GatedWay(Menu(file, parse_config(MENU, "test")))
        on_demand = OnDemand(way.menu, way)
        async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as tasks:
            on_demand.open(tasks)
            await story(on_demand, way, tasks)
            on_demand.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


async def outcome_of(waiting: Awaitable[None]) -> str:
    try:
        await waiting
    except StokerError as problem:
        return f"{type(problem).__name__}: {problem.what}"
    return "READY"


def test_all_who_wait_share_one_start_and_hear_that_it_is_ready() -> None:
    async def story(on_demand: OnDemand, way: GatedWay, tasks: asyncio.TaskGroup) -> None:
        waiting = [tasks.create_task(outcome_of(on_demand.bring("a"))) for _ in range(50)]
        on_demand.ask("a")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert on_demand.waits_for("a") == "its gate"
        way.gate.set()
        assert [await one for one in waiting] == ["READY"] * 50
        assert (way.began, on_demand.waits_for("a")) == (1, "")
        await on_demand.bring("a")
        assert way.began == 1

    play(story)


@pytest.mark.parametrize("problem", [StokerError("it died"), Refused("there is no room")])
def test_all_who_wait_hear_why_it_failed_and_no_other_start_follows_at_once(problem: StokerError) -> None:
    async def story(on_demand: OnDemand, way: GatedWay, tasks: asyncio.TaskGroup) -> None:
        way.fails = problem
        waiting = [tasks.create_task(outcome_of(on_demand.bring("a"))) for _ in range(3)]
        way.gate.set()
        said = f"{type(problem).__name__}: {problem.what}"
        assert [await one for one in waiting] == [said] * 3
        assert await outcome_of(on_demand.bring("a")) == said
        assert way.began == 1
        assert on_demand.pause_left_s("a") > 0

    play(story)


def test_a_start_that_failed_is_tried_again_once_its_table_was_changed(tmp_path: Path) -> None:
    file = tmp_path / "stoker.toml"

    async def story(on_demand: OnDemand, way: GatedWay, tasks: asyncio.TaskGroup) -> None:
        way.fails = StokerError("it died")
        way.gate.set()
        assert await outcome_of(on_demand.bring("a")) == "StokerError: it died"
        file.write_text('[service.a]\nmodel = "/other.gguf"\non_demand = true\n')
        await way.menu.refresh()
        way.fails = None
        assert await outcome_of(on_demand.bring("a")) == "READY"

    play(story, file)


def test_a_fault_of_stokers_own_is_told_and_ends_nothing() -> None:
    async def story(on_demand: OnDemand, way: GatedWay, tasks: asyncio.TaskGroup) -> None:
        way.fails = ZeroDivisionError("oops")
        way.gate.set()
        assert await outcome_of(on_demand.bring("a")) == "StokerError: Stoker itself failed (ZeroDivisionError: oops)"

    play(story)


def test_a_caller_who_leaves_takes_the_start_from_nobody() -> None:
    async def story(on_demand: OnDemand, way: GatedWay, tasks: asyncio.TaskGroup) -> None:
        leaves, stays = (tasks.create_task(outcome_of(on_demand.bring("a"))) for _ in range(2))
        await asyncio.sleep(0)
        leaves.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaves
        way.gate.set()
        assert await stays == "READY"
        assert way.began == 1

    play(story)


def test_when_all_have_left_the_start_goes_on_for_who_asks_next() -> None:
    async def story(on_demand: OnDemand, way: GatedWay, tasks: asyncio.TaskGroup) -> None:
        leaves = tasks.create_task(on_demand.bring("a"))
        await asyncio.sleep(0)
        leaves.cancel()
        await asyncio.sleep(0)
        way.gate.set()
        await on_demand.bring("a")
        assert way.began == 1

    play(story)


def test_who_may_not_start_it_now_is_told_at_once_and_may_ask_again() -> None:
    async def story(on_demand: OnDemand, way: GatedWay, tasks: asyncio.TaskGroup) -> None:
        way.holds = Refused("a workflow holds the machine")
        with pytest.raises(Refused, match="holds the machine"):
            on_demand.ask("a")
        way.holds = None
        way.gate.set()
        assert await outcome_of(on_demand.bring("a")) == "READY"

    play(story)


def test_at_the_daemons_end_everybody_who_waits_is_told() -> None:
    async def story(on_demand: OnDemand, way: GatedWay, tasks: asyncio.TaskGroup) -> None:
        waiting = [tasks.create_task(outcome_of(on_demand.bring("a"))) for _ in range(3)]
        await asyncio.sleep(0)
        on_demand.close()
        assert [await one for one in waiting] == ["StokerError: the daemon is ending"] * 3
        assert await outcome_of(on_demand.bring("a")) == "StokerError: the daemon is ending"

    play(story)
