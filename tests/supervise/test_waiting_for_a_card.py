"""A card with memory of its own: waited for before a start, and until it is back after a stop."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from memory_eater import write_eater
from no_engine import make_tools
from small_machine import SmallMachine
from stoker.box import is_running
from stoker.config import LimitsConfig
from stoker.errors import Refused
from stoker.plan.command import plan_command
from stoker.records import GIB, MIB, CardMemory, GpuProcess, Handle, Plan, SavedService, State, SwitchView, Wish
from stoker.supervise.card import describe_card, missing_on_card, say_card_holders
from stoker.supervise.hands import Tools
from stoker.supervise.process import find_marked
from stoker.supervise.runtimes.process import RunningProcess
from stoker.supervise.service import ServiceOwner
from stoker.supervise.supervisor import Supervisor

CARD_BYTES, TAKES_MIB, NEED_MIB = 1280 * MIB, 640, 704
SAYS = "it is up"
LIMITS = LimitsConfig(
    memory_floor_bytes=128 * MIB, settle_s=20.0, memory_wait_s=20.0, switch_cooldown_s=0.0, restarts=0, stop_grace_s=10.0
)
HOLDER = GpuProcess(0, 4711, "python", 60 * GIB)
HANDLE = Handle(
    1,
    "m",
    None,
    None,
    "boot",
    1,
    8 * GIB,
    card_before_bytes=70 * GIB,
    card_held_before_bytes=10 * GIB,
    card_claim_bytes=40 * GIB,
)


def card(free_gib: float, *processes: GpuProcess) -> CardMemory:
    return CardMemory("H100", 80 * GIB, int(free_gib * GIB), processes)


def missing_gib(free_gib: float, last_gib: float | None, *processes: GpuProcess, handle: Handle = HANDLE) -> float:
    last_bytes = None if last_gib is None else int(last_gib * GIB)
    return round(missing_on_card(card(free_gib, *processes), handle, last_bytes) / GIB, 3)


def holds(gib: int, name: str | None = "other") -> GpuProcess:
    return GpuProcess(0, 9, name, gib * GIB)


def test_a_card_is_back_when_as_much_is_free_as_before_less_a_tenth_of_what_was_taken() -> None:
    assert missing_gib(30, 30, holds(10)) == 36
    assert missing_gib(66, 30, holds(10)) == 0


def test_what_others_took_of_the_card_meanwhile_is_not_waited_for() -> None:
    assert missing_gib(46, 30, holds(30)) == 0, "the driver tells of it"
    assert missing_gib(46, 10) == 0, "it was gone before the end"
    assert missing_gib(46, 30, holds(10), holds(20, name=None)) == 20, "one that is dead already has not given it back"


def test_an_engine_that_died_unmeasured_held_all_that_was_gone() -> None:
    unmeasured = msgspec.structs.replace(HANDLE, card_claim_bytes=0)
    assert missing_gib(30, 30, holds(10), handle=unmeasured) == 36
    assert missing_gib(69.75, None, holds(10), handle=unmeasured) == 0


def test_nothing_is_awaited_of_a_card_that_was_not_looked_at_before() -> None:
    assert missing_gib(0, 0, handle=msgspec.structs.replace(HANDLE, card_before_bytes=None)) <= 0


def test_what_a_card_lacks_is_said_with_its_name_and_who_holds_it() -> None:
    assert describe_card(40 * GIB, card(19.5, HOLDER)) == (
        "40.0 GiB needed on the card (H100), 19.5 GiB of 80.0 GiB free there;"
        " most is held there by: python (pid 4711) 60.0 GiB"
    )
    assert say_card_holders(card(1)) == "nobody of whom the driver tells"
    told = say_card_holders(card(1, GpuProcess(0, 5, None, None), *[HOLDER] * 5))
    assert told.startswith("a process that is not seen here (pid 5) (how much, the driver does not tell), python")
    assert told.endswith(" and 1 more")


class SmallCard(SmallMachine):
    """A card whose memory only the eaters' processes take, beside a machine that has plenty."""

    def read_card(self) -> CardMemory | None:
        """Counts what those processes hold, as a driver tells it."""
        free_bytes = self.read().available_bytes
        holding = [(pid, held_bytes) for pid, held_bytes in self._held.items() if held_bytes]
        named = ((int(pid), "eater" if is_running(int(pid)) else None, held_bytes) for pid, held_bytes in holding)
        told = (GpuProcess(0, *one) for one in named)
        return CardMemory("Small Card", self.total_bytes, free_bytes, tuple(told))


class Desk:
    """A supervisor over a machine with a small card, and eaters that are said to eat of the card."""

    def __init__(self, folder: Path, limits: LimitsConfig = LIMITS) -> None:
        self.folder, self.instance = folder, f"card-{folder.name}-{os.getpid()}"
        self.card = SmallCard(folder / "pids", CARD_BYTES)
        roomy = SmallMachine(folder / "none", 64 * GIB)
        plain = make_tools(folder, roomy)
        fields = {name: getattr(plain, name) for name in Tools.__dataclass_fields__ if name != "turn"}
        self.tools = Tools(**{**fields, "limits": limits, "instance": self.instance, "read_card": self.card.read_card})
        self.saved: dict[str, SavedService] = {}
        self.supervisor = Supervisor(self.tools, [], self.save)

    def save(self, saved: SavedService) -> None:
        """Keeps a service as the store does: as text."""
        self.saved[saved.plan.service] = msgspec.json.decode(msgspec.json.encode(saved), type=SavedService)

    def plan(self, name: str, need_mib: int = NEED_MIB, **task: Any) -> Plan:
        """Returns the plan of an eater that needs so much of the card, and 64 MiB of the machine."""
        words = {"take_mib": TAKES_MIB, "pids": str(self.card.pids), "says": SAYS, **task}
        program = (str(write_eater(self.folder / name, **words)),)
        wish = Wish(
            name=name, model="", engine="command", program=program, claim_gib=(need_mib + 64) / 1024, ready_line=SAYS
        )
        return msgspec.structs.replace(plan_command(wish), card_need_bytes=need_mib * MIB)

    async def up(self, plan: Plan, *states: State) -> ServiceOwner:
        """Starts an eater and waits for one of the states."""
        owner = await self.supervisor.start(plan, "a test")
        await reach(owner, *states)
        return owner

    async def switch(self, plan: Plan) -> SwitchView:
        """Switches to an eater, to the end."""
        view: SwitchView | None = await self.supervisor.switch(plan)
        while view is not None and view.outcome is None:
            view = await self.supervisor.switcher.await_change(len(view.steps), view.since, 1.0)
        assert view is not None
        return view


async def reach(owner: ServiceOwner, *states: State) -> None:
    """Waits until a service is in one of the states."""
    async with asyncio.timeout(60):
        while owner.service.state not in states:
            await owner.await_change(1.0)


@asynccontextmanager
async def living(desk: Desk) -> AsyncIterator[Desk]:
    """Runs the supervisor; ends all engines afterwards."""
    others = set(psutil.Process().children())
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(desk.supervisor.run())
        try:
            yield desk
        finally:
            desk.card.keeps, desk.card.others_bytes = False, 0
            await desk.supervisor.pause("the test is over")
            while set(psutil.Process().children()) - others:
                await asyncio.sleep(0.01)
            running.cancel()
    assert list(find_marked(f"{desk.instance}/")) == []


Play = Callable[[Desk], Coroutine[Any, Any, None]]


def play(folder: Path, story: Play, **limits: float) -> None:
    """Plays a story on a desk of its own."""

    async def run() -> None:
        async with living(Desk(folder, msgspec.structs.replace(LIMITS, **limits))) as desk:
            await story(desk)

    asyncio.run(run())


def test_a_start_waits_until_the_card_has_room_and_says_who_holds_it(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        first = await desk.up(desk.plan("first"), State.READY)
        assert first.service.why
        second = await desk.up(desk.plan("second"), State.WAITING_FOR_MEMORY)
        await desk.supervisor.look_at_memory()
        async with asyncio.timeout(10):
            while "Small Card" not in (second.view().awaits or ""):
                await asyncio.sleep(0.01)
        awaits = second.view().awaits or ""
        assert awaits.startswith("64 MiB above the floor of 128 MiB, and 704 MiB needed on the card (Small Card), ")
        assert "of 1.2 GiB free there; most is held there by: eater (pid " in awaits
        assert awaits.endswith("(memory_wait_s 20); `stoker switch second` stops first for it")
        desk.supervisor.stop("first", "you asked for it")
        await reach(second, State.READY)

    play(tmp_path, story)


def test_a_card_that_stays_full_is_named_with_who_holds_it_when_the_wait_is_over(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        desk.card.others_bytes = 1000 * MIB
        owner = await desk.up(desk.plan("late"), State.FAILED)
        assert owner.service.why == (
            "no room within 0.3 s (memory_wait_s): 704 MiB needed on the card (Small Card), 280 MiB of 1.2 GiB free there;"
            " most is held there by: nobody of whom the driver tells"
        )

    play(tmp_path, story, memory_wait_s=0.3)


def test_what_no_empty_card_holds_is_refused_at_once(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        begun_s = time.monotonic()
        owner = await desk.up(desk.plan("huge", need_mib=1300), State.FAILED)
        assert time.monotonic() - begun_s < LIMITS.memory_wait_s / 2
        assert owner.service.why.startswith(
            "it does not fit in this machine's card: 1.3 GiB needed on the card (Small Card)"
        )
        with pytest.raises(Refused, match=r"huge needs 1\.3 GiB of the card's memory \(Small Card\)"):
            await desk.switch(desk.plan("huge", need_mib=1300))

    play(tmp_path, story)


def test_a_switch_stops_who_holds_the_card_and_waits_for_it(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.up(desk.plan("first", gives_back_s=1.0), State.READY)
        view = await desk.switch(desk.plan("second"))
        assert (view.outcome, view.goes) == ("ready", ("first",)), view
        second = desk.supervisor.find("second")
        assert desk.saved["second"].handle is not None
        assert (desk.saved["second"].handle.card_before_bytes or 0) > CARD_BYTES - 128 * MIB
        assert second.service.state is State.READY

    play(tmp_path, story)


def test_a_card_that_does_not_come_back_wedges_the_service_and_is_told(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        owner = await desk.up(desk.plan("leaves"), State.READY)
        desk.card.keeps = True
        desk.card.read()
        desk.supervisor.stop("leaves", "you asked for it")
        await reach(owner, State.WEDGED, State.STOPPED)
        assert owner.service.state is State.WEDGED, owner.service
        assert (
            " of its memory on the card (Small Card) were not back after 0.5 s (settle_s); most of the card is held by: "
            in (owner.service.why)
        )
        desk.card.keeps = False
        desk.supervisor.stop("leaves", "you asked for it")
        await reach(owner, State.STOPPED)

    play(tmp_path, story, settle_s=0.5)


def test_the_next_daemon_waits_for_the_card_of_an_engine_that_it_found(tmp_path: Path) -> None:
    async def run() -> None:
        first = Desk(tmp_path)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(first.supervisor.run())
            await first.up(first.plan("chat"), State.READY)
            child = first.supervisor.owners["chat"]._hands.running
            running.cancel()  # as by SIGKILL: nothing is stopped
        next_one = Desk(tmp_path, msgspec.structs.replace(LIMITS, settle_s=0.5))
        next_one.supervisor = Supervisor(next_one.tools, first.saved.values(), next_one.save)
        try:
            async with living(next_one) as desk:
                owner = desk.supervisor.find("chat")
                await reach(owner, State.READY)
                desk.card.read()
                desk.card.keeps = True
                desk.card.read()
                desk.supervisor.stop("chat", "you asked for it")
                await reach(owner, State.WEDGED, State.STOPPED)
                assert "of its memory on the card (Small Card) were not back" in owner.service.why
        finally:
            assert isinstance(child, RunningProcess) and child._process._popen is not None
            child._process._popen.wait()  # both daemons live in this process, whose child it was

    asyncio.run(run())


def test_a_machine_whose_card_tells_nothing_waits_for_its_own_memory_alone(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        object.__setattr__(desk.tools, "read_card", lambda: None)
        owner = await desk.up(desk.plan("blind"), State.READY)
        desk.supervisor.stop("blind", "you asked for it")
        await reach(owner, State.STOPPED)
        saved = desk.saved["blind"]
        assert (saved.service.state, saved.handle) == (State.STOPPED, None)

    play(tmp_path, story)
