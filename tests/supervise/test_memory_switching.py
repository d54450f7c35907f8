"""Switching for memory: services that really take it, on a machine that holds nothing else."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from memory_eater import write_eater
from small_machine import NoGate, SmallMachine
from stoker.config import LimitsConfig, Paths
from stoker.errors import Refused
from stoker.plan.command import plan_command
from stoker.records import MIB, Endpoint, Plan, Proof, State, SwitchView, Wish
from stoker.supervise.hands import Tools
from stoker.supervise.process import find_marked
from stoker.supervise.service import ServiceOwner
from stoker.supervise.supervisor import Supervisor

TOTAL_BYTES, FLOOR_BYTES = 1280 * MIB, 128 * MIB
TAKES_MIB = 640
LIMITS = LimitsConfig(
    memory_floor_bytes=FLOOR_BYTES, stop_grace_s=10.0, settle_s=20.0, memory_wait_s=20.0, switch_cooldown_s=0.0, restarts=0
)
SAYS = "it is up"


async def is_healthy(endpoint: Endpoint, path: str) -> bool:
    """No eater listens; the line that it prints is what counts."""
    raise AssertionError


async def prove(endpoint: Endpoint) -> Proof:
    """An eater is no model that could be asked."""
    raise AssertionError


async def no_counters(endpoint: Endpoint) -> tuple[str, ...] | None:
    """An eater counts nothing."""
    return None


class Desk:
    """A supervisor over a small machine, and eaters to be started by it."""

    def __init__(self, folder: Path, limits: LimitsConfig = LIMITS) -> None:
        self.folder = folder
        self.machine = SmallMachine(folder / "pids", TOTAL_BYTES)
        self.instance = f"desk-{folder.name}"
        tools = Tools(
            paths=Paths(state=folder, config=folder / "stoker.toml"), limits=limits, instance=self.instance, engine_key="k",
            read_memory=self.machine.read, is_healthy=is_healthy, prove=prove, gate=NoGate(), in_flight=lambda service: 0,
            heard_at=lambda service: 0.0, read_counters=no_counters, keep_start=lambda start: None,
            cuda_counts_cache=lambda: False, has_gpu=lambda: False,
        )  # fmt: skip
        self.supervisor = Supervisor(tools, [], lambda saved: None)

    def plan(self, name: str, claim_mib: int = TAKES_MIB + 64, group: str | None = None, **task: Any) -> Plan:
        """Returns the plan of an eater."""
        words = {"take_mib": TAKES_MIB, "pids": str(self.machine.pids), "says": SAYS, **task}
        program = (str(write_eater(self.folder / name, **words)),)
        return plan_command(
            Wish(
                name=name,
                model="",
                engine="command",
                program=program,
                claim_gib=claim_mib / 1024,
                ready_line=SAYS,
                group=group,
            )
        )

    async def up(self, plan: Plan, *states: State) -> ServiceOwner:
        """Starts an eater and waits for one of the states."""
        owner = await self.supervisor.start(plan, "a test")
        await reach(owner, *states)
        return owner

    async def switch(self, plan: Plan) -> SwitchView:
        """Switches to an eater, to the end."""
        view = await self.supervisor.switch(plan)
        while view.outcome is None:
            found = await self.supervisor.switcher.await_change(len(view.steps), view.since, 1.0)
            assert found is not None
            view = found
        return view

    def state(self, name: str) -> State:
        """The state of a service."""
        return self.supervisor.find(name).service.state


async def reach(owner: ServiceOwner, *states: State) -> None:
    """Waits until a service is in one of the states."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(60):
            while owner.service.state not in states:
                await owner.await_change(1.0)
    assert owner.service.state in states, owner.view().why


@contextlib.asynccontextmanager
async def living(desk: Desk) -> AsyncIterator[Desk]:
    """Runs the supervisor; ends all engines afterwards."""
    others = set(psutil.Process().children())  # a daemon that other tests share
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(desk.supervisor.run())
        try:
            yield desk
        finally:
            desk.machine.keeps = False
            await desk.supervisor.pause("the test is over")
            while set(psutil.Process().children()) - others:  # the last is dead, and reaped a moment later
                await asyncio.sleep(0.01)
            running.cancel()
    assert list(find_marked(f"{desk.instance}/")) == []


@pytest.mark.parametrize("task", [{}, {"gives_back_s": 2.0}, {"ignores_term": True}])
def test_a_switch_stops_what_leaves_no_room_and_waits_for_its_memory(tmp_path: Path, task: dict[str, Any]) -> None:
    async def play() -> None:
        limits = LIMITS if not task.get("ignores_term") else LimitsConfig(**{**asdict(LIMITS), "stop_grace_s": 0.3})
        async with living(Desk(tmp_path, limits)) as desk:
            first, second = desk.plan("first", **task), desk.plan("second")
            await desk.up(first, State.READY)
            view = await desk.switch(second)
            assert (view.outcome, view.goes) == ("ready", ("first",)), view
            assert (desk.state("first"), desk.state("second")) == (State.STOPPED, State.READY)
            assert desk.machine.low_bytes >= FLOOR_BYTES + MIB

    asyncio.run(play())


def asdict(limits: LimitsConfig) -> dict[str, Any]:
    """Returns the fields of the limits."""
    return {name: getattr(limits, name) for name in limits.__struct_fields__}


def test_a_start_that_has_no_room_says_who_would_have_to_stop(tmp_path: Path) -> None:
    async def play() -> None:
        async with living(Desk(tmp_path)) as desk:
            await desk.up(desk.plan("first"), State.READY)
            owner = await desk.up(desk.plan("second"), State.WAITING_FOR_MEMORY)
            assert owner.view().awaits == (
                "704 MiB above the floor of 128 MiB (memory_wait_s 20); `stoker switch second` stops first for it"
            )

    asyncio.run(play())


def test_a_switch_takes_the_place_of_one_that_waits_for_memory_too(tmp_path: Path) -> None:
    async def play() -> None:
        async with living(Desk(tmp_path)) as desk:
            await desk.up(desk.plan("first"), State.READY)
            await desk.up(desk.plan("second"), State.WAITING_FOR_MEMORY)
            view = await desk.switch(desk.plan("third"))
            assert view.outcome == "ready", view
            assert set(view.goes) == {"first", "second"}
            assert desk.state("third") is State.READY

    asyncio.run(play())


def test_what_never_fits_is_refused_before_anything_stops(tmp_path: Path) -> None:
    async def play() -> None:
        async with living(Desk(tmp_path)) as desk:
            await desk.up(desk.plan("first"), State.READY)
            with pytest.raises(Refused, match="there would not be as much if all services stopped"):
                await desk.switch(desk.plan("second", claim_mib=1300))
            assert desk.state("first") is State.READY

    asyncio.run(play())


def test_memory_that_does_not_come_back_wedges_the_switch_and_nothing_else_is_started(tmp_path: Path) -> None:
    async def play() -> None:
        limits = LimitsConfig(**{**asdict(LIMITS), "settle_s": 0.5})
        async with living(Desk(tmp_path, limits)) as desk:
            await desk.up(desk.plan("first", group="one"), State.READY)
            desk.machine.keeps = True
            view = await desk.switch(desk.plan("second", group="one", take_mib=64, claim_mib=64))
            assert (view.outcome, view.exit_code) == ("failed", 1), view
            assert "first is WEDGED" in view.why
            assert "were not back after 0.5 s (settle_s)" in view.why
            assert "second" not in desk.supervisor.owners
            desk.machine.keeps = False
            await desk.up(desk.plan("first", group="one"), State.READY)

    asyncio.run(play())


def test_a_start_that_takes_more_than_the_last_one_is_let_be_within_its_plan(tmp_path: Path) -> None:
    async def play() -> None:
        async with living(Desk(tmp_path)) as desk:
            desk.machine.others_bytes = 400 * MIB  # as near to the floor as the plan allows
            owner = await desk.up(desk.plan("first", mib_per_s=400), State.READY)
            desk.supervisor.stop("first", "a test")
            await reach(owner, State.STOPPED)
            plan = desk.plan("first", mib_per_s=400, take_mib=TAKES_MIB + 40)
            assert plan.plan_id == owner.plan.plan_id
            await desk.up(plan, State.READY)

    asyncio.run(play())


@pytest.mark.parametrize("anonymous_bytes", [None, 64 * MIB], ids=["nobody tells whose", "in no process"])
def test_what_others_took_during_a_load_is_not_waited_for_after_a_stop(tmp_path: Path, anonymous_bytes: int | None) -> None:
    async def play() -> None:
        limits = LimitsConfig(**{**asdict(LIMITS), "settle_s": 0.5})
        async with living(Desk(tmp_path, limits)) as desk:
            desk.machine.anonymous_bytes = anonymous_bytes
            owner = await desk.up(desk.plan("first", claim_mib=464, take_mib=400, mib_per_s=400), State.LOADING)
            desk.machine.others_bytes = 400 * MIB  # more than the slack of a stop
            await reach(owner, State.READY)
            owner.ask_stop("a test")
            await reach(owner, State.STOPPED, State.WEDGED)
            assert owner.service.state is State.STOPPED, owner.service

    asyncio.run(play())


def test_one_that_leaks_is_stopped_though_another_waits_for_memory(tmp_path: Path) -> None:
    async def play() -> None:
        async with living(Desk(tmp_path)) as desk:
            leaky = desk.plan("leaky", claim_mib=700, take_mib=1280, up_mib=640, mib_per_s=250)
            owner = await desk.up(leaky, State.READY)
            await desk.up(desk.plan("second"), State.WAITING_FOR_MEMORY)
            await reach(owner, State.FAILED, State.STOPPED)
            assert "stopped before the machine ran out of memory" in owner.service.why
            await reach(desk.supervisor.find("second"), State.READY)

    asyncio.run(play())
