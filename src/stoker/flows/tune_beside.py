"""Tries a way as a second service beside the one that stays up, and asks both the same prompts in turn."""

from __future__ import annotations

from contextlib import ExitStack

import msgspec

from stoker.bench.figures import figures_of
from stoker.bench.turns import Turns, take_turns
from stoker.box import LocalBox
from stoker.config import Config
from stoker.errors import Refused, StokerError
from stoker.facts.machine.memory import read_memory
from stoker.facts.machine.nvidia import watching_card
from stoker.flows.bench_targets import choose_service
from stoker.flows.client import Daemon
from stoker.flows.down import stop_service
from stoker.flows.planning import make_plan
from stoker.flows.tunable import Tunable
from stoker.flows.tune_asking import Asking, TuningStopped
from stoker.records import BenchCell, BenchRepeat, Plan, Seen, ServiceView, Sighting, Way, Wish, say_bytes
from stoker.tune.level import level
from stoker.tune.reading import read_rates

ALONE = "tune without --beside, which tries one after the other"
WARM_UP = -1  # of no repeat: what is asked first after a rest is slow


class Beside:
    """What is beside: the second service while there is one, and the turns of the first, which stays as it is."""

    def __init__(self, daemon: Daemon, config: Config, tunable: Tunable, asking: Asking) -> None:
        self._daemon, self._tunable, self._asking = daemon, tunable, asking
        self._floor_bytes = config.limits.memory_floor_bytes
        self.name = _free_name(tunable.wish.name, {*config.services, *(one.name for one in daemon.status().services)})
        self._turns: dict[BenchCell, Turns] = {}
        self._repeats: dict[BenchCell, list[BenchRepeat]] = {}
        self._connections = ExitStack()
        self._way: Way | None = None  # of the second service, while there is one

    def check_room(self, way: Way) -> None:
        """Raises TuningStopped where the memory that is free now does not hold a way as well."""
        why = _say_short(make_plan(self._wish_for(way)), self._floor_bytes)
        if why:
            raise TuningStopped(f"there is no room for a second {self._tunable.wish.name}", why=f"{why}; {ALONE}")

    def begin(self, way: Way) -> ServiceView:
        """Returns the second service as it begins to start that way; raises TuningStopped where it has no room."""
        self.check_room(way)
        if not self._turns:
            self._meet()
        self._repeats = {cell: [] for cell in self._turns}
        self._way = way
        return self._daemon.up(self._wish_for(way), is_trial=True)

    def ask(self, cell: BenchCell, number: int) -> None:
        """Asks the first service what the second one was just asked; raises TuningStopped where it does not answer."""
        turns, repeats = self._turns[cell], self._repeats[cell]
        try:
            if not repeats:
                turns.play(WARM_UP)
            repeats.append(turns.play(number))
        except StokerError as problem:
            raise self._unanswered(problem.what) from problem
        if failed := [one.error for one in repeats[-1].requests if one.error]:
            raise self._unanswered(failed[0])

    def _unanswered(self, why: str) -> TuningStopped:
        name = self._way.name if self._way else ""
        return TuningStopped(
            f"{self._tunable.wish.name} did not answer while {name} was tried beside it",
            why=f"it is what every way is compared with ({why})",
        )

    def level(self, seen: Seen, cell: BenchCell, present: Sighting) -> Seen:
        """Returns what the second service gave at the pace at which the first was measured."""
        beside = read_rates(figures_of(self._repeats[cell], self._asking.slo), self._asking.objective)
        return level(seen, present.seen[self._asking.cells().index(cell)].rates, beside)

    def end(self) -> None:
        """Ends the second service, and forgets it; raises StokerError where its memory is not back."""
        if self._way is None:
            return
        for _ in stop_service(self._daemon, self.name):
            pass
        self._daemon.forget(self.name)
        self._way = None

    def close(self) -> None:
        """Ends all that is beside, also where something else went wrong before."""
        self._connections.close()
        self.end()

    def _meet(self) -> None:
        target, subject = choose_service(self._tunable.wish.name, direct=True)
        for cell in self._asking.cells():
            self._turns[cell] = take_turns(target, subject.engine, cell, self._asking.seed, self._connections)

    def _wish_for(self, way: Way) -> Wish:
        """Returns a way's wish as a service of its own, which nobody asks by the first one's names."""
        wish = self._tunable.wish_for(way)
        return msgspec.structs.replace(wish, name=self.name, served_name=self.name, port=None, group=None)


def check_beside(tunable: Tunable, asking: Asking) -> None:
    """Raises Refused where a service cannot run twice."""
    if tunable.wish.boxes:
        raise Refused(f"{tunable.wish.name} runs over several boxes, and not twice", next_step=ALONE)
    if asking.knob == "memory_share":
        raise Refused("what is tuned is how much of the memory it takes, and two at once share that", next_step=ALONE)


def _free_name(service: str, taken: set[str]) -> str:
    names = (f"{service}-beside{number or ''}" for number in range(len(taken) + 1))
    return next(name for name in names if name not in taken)


def _say_short(plan: Plan, floor_bytes: int) -> str:
    """Returns which memory is too short for a plan; nothing where none is, as far as anybody tells."""
    need_bytes, available_bytes = plan.host_need_bytes + floor_bytes, read_memory(LocalBox()).available_bytes
    if need_bytes > available_bytes:
        return f"with the floor of memory it needs {say_bytes(need_bytes)}, and {say_bytes(available_bytes)} are free"
    if not plan.card_need_bytes:
        return ""
    with watching_card() as look:
        card = look()
    if card is None or card.free_bytes >= plan.card_need_bytes:
        return ""
    return f"it needs {say_bytes(plan.card_need_bytes)} of the {card.name}, and {say_bytes(card.free_bytes)} are free there"
