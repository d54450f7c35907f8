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
from stoker.flows.tune_asking import NEAR_FLOOR, Asking, TuningStopped
from stoker.records import BenchCell, BenchRepeat, Plan, Seen, ServiceView, Sighting, Way, Wish, say_bytes
from stoker.tune.level import level
from stoker.tune.reading import read_rates

ALONE = "tune without --beside, which tries one after the other"
LONGEST = 48  # letters of a name that leave room for more in it
WARM_UP = -1  # of no repeat: what is asked first after a rest is slow


class Beside:
    """What is beside: the second service while there is one, and the turns of the first, which stays as it is."""

    def __init__(self, daemon: Daemon, config: Config, tunable: Tunable, asking: Asking) -> None:
        self._daemon, self._tunable, self._asking = daemon, tunable, asking
        self._least_bytes = int(NEAR_FLOOR * config.limits.memory_floor_bytes)
        here = daemon.status().services
        taken = {*config.services, *config.aliases, *(one.name for one in here), *(one.model for one in here)}
        self._name = _free_name(tunable.wish.name, taken)
        self._turns: dict[BenchCell, Turns] = {}
        self._repeats: dict[BenchCell, list[BenchRepeat]] = {}
        self._connections = ExitStack()
        self._way: Way | None = None  # of the second service, while there is one
        self._is_begun = False

    def check_room(self, way: Way) -> None:
        """Raises Refused where the memory that is free now does not hold a way as well."""
        why = _say_short(make_plan(self._wish_for(way)), self._least_bytes)
        if why:
            raise Refused(f"there is no room for a second {self._tunable.wish.name}", why=f"{why}; {ALONE}")

    def begin(self, way: Way) -> ServiceView:
        """Returns the second service as it begins to start that way.

        Raises Refused where it has no room, TuningStopped where the first one does not answer.
        """
        self.check_room(way)
        try:
            self._meet()
        except StokerError as problem:
            raise self._unanswered(way, problem.what) from problem
        self._way, self._is_begun = way, False
        view = self._daemon.up(self._wish_for(way), is_trial=True)
        self._is_begun = True
        return view

    def ask(self, cell: BenchCell, number: int) -> None:
        """Asks the first service what the second one was just asked; raises TuningStopped where it does not answer."""
        turns, repeats = self._turns[cell], self._repeats[cell]
        try:
            if not repeats:
                turns.play(WARM_UP)
            repeats.append(turns.play(number))
        except StokerError as problem:
            raise self._unanswered(self._way, problem.what) from problem
        if failed := [one.error for one in repeats[-1].requests if one.error]:
            raise self._unanswered(self._way, failed[0])

    def _unanswered(self, way: Way | None, why: str) -> TuningStopped:
        tried = way.name if way else "another way"
        return TuningStopped(
            f"{self._tunable.wish.name} did not answer while {tried} was tried beside it",
            why=f"it is what every way is compared with ({why})",
        )

    def level(self, seen: Seen, cell: BenchCell, present: Sighting) -> Seen | None:
        """Returns what the second service gave at the pace at which the first was measured; None where nobody knows."""
        beside = read_rates(figures_of(self._repeats[cell]), self._asking.objective)
        found = level(seen, present.seen[self._asking.cells().index(cell)].rates, beside)
        return found if found.rates else None

    def end(self) -> None:
        """Ends the second service, and forgets it; raises TuningStopped where its memory is not back."""
        self._connections.close()
        if self._way is None:
            return
        if self._is_begun or self._is_heard(self._way):
            try:
                for _ in stop_service(self._daemon, self._name):
                    pass
                self._daemon.forget(self._name)
            except StokerError as problem:
                raise TuningStopped(problem.what, why=problem.why or problem.next_step or "") from problem
        self._way = None

    def _is_heard(self, way: Way) -> bool:
        """Tells whether a wish whose answer did not come is one that the daemon takes: it is asked again, to be ended."""
        try:
            self._daemon.up(self._wish_for(way), is_trial=True)
        except StokerError:
            return False
        return True

    def _meet(self) -> None:
        """Goes to the first service anew, so that its engine has seen none of the prompts, as it is with the second one."""
        target, subject = choose_service(self._tunable.wish.name, direct=True)
        self._repeats = {cell: [] for cell in self._asking.cells()}
        for cell in self._repeats:
            self._turns[cell] = take_turns(target, subject.engine, cell, self._asking.seed, self._connections)

    def _wish_for(self, way: Way) -> Wish:
        """Returns a way's wish as a service of its own, which nobody asks by the first one's names."""
        wish = self._tunable.wish_for(way)
        return msgspec.structs.replace(wish, name=self._name, served_name=self._name, port=None, group=None)


def check_beside(tunable: Tunable, asking: Asking) -> None:
    """Raises Refused where a service cannot run twice."""
    if tunable.wish.boxes:
        raise Refused(f"{tunable.wish.name} runs over several boxes, and not twice", next_step=ALONE)
    if asking.knob == "memory_share":
        raise Refused(
            "`memory_share` cannot be tuned beside what runs", why="two at once share the memory", next_step=ALONE
        )  # fmt: skip
    if asking.objective == "goodput":
        raise Refused(
            "goodput cannot be tuned beside what runs", next_step=ALONE,
            why="it counts requests that kept their limits, and whether one did on a slower machine cannot be told",
        )  # fmt: skip


def _free_name(service: str, taken: set[str]) -> str:
    names = (f"{service[:LONGEST]}-beside{number or ''}" for number in range(len(taken) + 1))
    return next(name for name in names if name not in taken)


def _say_short(plan: Plan, least_bytes: int) -> str:
    """Returns which memory is too short for a plan; nothing where none is, as far as anybody tells."""
    need_bytes, available_bytes = plan.host_need_bytes + least_bytes, read_memory(LocalBox()).available_bytes
    if need_bytes > available_bytes:
        return f"with what has to stay free it needs {say_bytes(need_bytes)}, and {say_bytes(available_bytes)} are free"
    if not plan.card_need_bytes:
        return ""
    with watching_card() as look:
        card = look()
    if card is None or card.free_bytes >= plan.card_need_bytes:
        return ""
    return f"it needs {say_bytes(plan.card_need_bytes)} of the {card.name}, and {say_bytes(card.free_bytes)} are free there"
