"""Tunes how a service drafts: few starts, each where it tells most, and the best way written down with its evidence."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from stoker.bench.cell import MOST_BUDGETS
from stoker.config import Config, Paths
from stoker.engines import find
from stoker.errors import Refused, StokerError
from stoker.flows.bench_runs import write_text
from stoker.flows.bringing import stop_those_up
from stoker.flows.lease import hold_run
from stoker.flows.planning import make_plan
from stoker.flows.tunable import Tunable, read_tunable
from stoker.flows.tune_asking import Asking, Interrupted, Talk, TuningStopped
from stoker.flows.tune_beside import check_beside
from stoker.flows.tune_file import Writer
from stoker.flows.tune_room import check_cache_is_short
from stoker.flows.tune_trying import Trier, say_time
from stoker.flows.up import check_ready, ensure_daemon
from stoker.records import Sighting, State, TriedWay, TuneView, Way, say_s
from stoker.store.timelines import read_starts
from stoker.supervise.steps import ended_as_by_ctrl_c
from stoker.tune import choosing
from stoker.tune.choosing import Guesses, choose, most_starts, next_pair, next_scout, next_way
from stoker.tune.curve import Guess
from stoker.tune.guessing import guess_all
from stoker.tune.picture import render_page, render_svg
from stoker.tune.ratios import band_of, start_spread, together
from stoker.tune.showing import make_view
from stoker.tune.tiers import with_tiers

LAST_LINES = 12
PICTURES = {".html": render_page, ".svg": render_svg}
BUDGET_OVER = "the budget is over"
INTERRUPTED = "it was interrupted; the service is as it was, and stoker.toml too"


def plan_tuning(paths: Paths, config: Config, service: str | None, asking: Asking) -> TuneView:
    """Returns what a tuning would try, and how long that may take by the starts that are kept; nothing is started.

    Raises Refused where what is found could not be written down.
    """
    tunable = _read(service, config, asking)
    Writer(config, tunable)
    state = start_state(tunable, asking)
    start_s = expected_start_s(paths, tunable.wish.name)
    most = min(most_starts(state), len(state.ways)) + 1
    longer = MOST_BUDGETS if asking.knob == "drafts" else 1.0  # sizes are not measured on
    measuring_s = most * longer * asking.measure_s * len(asking.cells())
    expected_s = None if start_s is None else most * start_s + measuring_s
    whom = f"a second {tunable.wish.name} beside it" if asking.beside else "the service"
    why = f"it would start {whom} at most {most} times, where trying everything takes {len(state.ways)}"
    if start_s is None:
        why += f"; beside the starts, measuring takes up to {say_s(measuring_s)}"
    return msgspec.structs.replace(_view(tunable, asking, state, {}), why=why, expected_s=expected_s)


def tune(paths: Paths, config: Config, service: str | None, asking: Asking, talk: Talk) -> TuneView:
    """Returns what was found, with the best way running and written down; else everything is as it was before."""
    tunable = _read(service, config, asking)
    writer = Writer(config, tunable)
    with hold_run(paths, f"tune {tunable.wish.name}"), ended_as_by_ctrl_c():
        return _Tuning(paths, config, tunable, writer, asking, talk).run()


def _read(service: str | None, config: Config, asking: Asking) -> Tunable:
    tunable = read_tunable(service, config, asking.knob, max(asking.concurrency), asking.only)
    if asking.beside:
        check_beside(tunable, asking)
    check_cache_is_short(tunable, asking)
    return tunable


def start_state(tunable: Tunable, asking: Asking) -> choosing.State:
    """Returns what is known of a service before anything was measured."""
    loads = tuple(cell.load.concurrency or 1 for cell in asking.cells())
    tiered = find(tunable.plan.engine).drafting.get("draft_tiers", frozenset())
    return choosing.State(tunable.families, loads=loads, tiered=tiered)


def write_picture(view: TuneView, file: Path) -> None:
    """Draws a tuning as the kind of file that its name says, one of PICTURES."""
    write_text(file, PICTURES[file.suffix](view))


def expected_start_s(paths: Paths, service: str) -> float | None:
    """Returns the median of a service's last starts; None where none is known."""
    took_s = sorted(one.timeline.total_s for one in read_starts(paths.database, service) if one.timeline.total_s is not None)
    return took_s[len(took_s) // 2] if took_s else None


def _view(tunable: Tunable, asking: Asking, state: choosing.State, guesses: Guesses) -> TuneView:
    view = make_view(tunable.plan.engine, tunable.present, state, guesses, tunable.refused)
    return msgspec.structs.replace(
        view, service=tunable.wish.name, objective=asking.objective, contents=asking.contents, warnings=tunable.warnings
    )


class _Tuning:
    def __init__(
        self, paths: Paths, config: Config, tunable: Tunable, writer: Writer, asking: Asking, talk: Talk
    ) -> None:  # fmt: skip
        self._paths, self._tunable, self._writer, self._asking, self._talk = paths, tunable, writer, asking, talk
        self._daemon = ensure_daemon(paths)
        self._trier = Trier(paths, config, self._daemon, tunable, asking, talk)
        self._guesses: dict[Way, Guess] = {}
        self._failures: dict[Way, str] = {}
        self._tried: Way | None = None
        self._began_s = time.monotonic()
        ready = {one.name: one.plan_id for one in self._daemon.status().services if one.state is State.READY}
        runs = ready.get(tunable.wish.name)
        self._was_up = runs is not None
        is_present = runs == make_plan(tunable.wish_for(tunable.present)).plan_id
        if asking.beside and self._was_up and not is_present:
            name = tunable.wish.name
            raise Refused(
                f"{name} does not run as its table says, so it could not stay up while it is tuned",
                next_step=f"`stoker up {name}` brings it there, or tune without --beside",
            )
        self._state = msgspec.structs.replace(start_state(tunable, asking), was_up=is_present)

    def run(self) -> TuneView:
        """Explores, and then either adopts the best way or puts everything back."""
        view = self._run()
        return msgspec.structs.replace(view, starts=self._trier.starts, took_s=time.monotonic() - self._began_s)

    def _run(self) -> TuneView:
        with self._restoring(), closing(self._trier):
            try:
                why = self._explore()
            except (Interrupted, KeyboardInterrupt):
                return self._end(None, INTERRUPTED)
            except TuningStopped as problem:
                return self._end(None, f"{problem.what}: {problem.why}")
            if not self._state.measured:
                raise self._nothing()
            best, because = choose(self._state, self._tunable.present)
            view = self._end(best.way, because + (f"; {why}" if why else ""))
            return self._adopt(best.way, view)

    def _explore(self) -> str:
        """Tries ways until one is best beyond doubt; returns why it ended before that, else nothing."""
        way: Way | None = self._tunable.present
        while way is not None:
            if not self._has_time():
                return BUDGET_OVER
            self._take(way, self._trier.find_kept(way) or self._try(way))
            way = self._next()
        return self._start_again()

    def _start_again(self) -> str:
        """Starts the last two once more, where starts are left and a single one of each tells too little."""
        if self._asking.beside and len(self._state.measured) > 1:
            return f"each was asked in turn with {self._tunable.present.name}, which stayed up"
        pair = next_pair(self._state, self._tunable.present) if self._state.measured else ()
        for way in sorted(pair, key=lambda one: one == self._tried):  # what runs is no new start
            if not self._has_time():
                return BUDGET_OVER
            self._take_again(way, self._try(way))
        measured = [one for one in self._state.measured if one.start_logs]
        spread = math.expm1(start_spread(*(one.start_logs for one in measured)))
        return f"each of the last two was started twice, and a start alone changes {spread:.1%}" if measured else ""

    def _take_again(self, way: Way, found: Sighting | str) -> None:
        before = self._state.find(way)
        self._take(way, found if isinstance(found, str) or before is None else together(before, found))

    def _try(self, way: Way) -> Sighting | str:
        self._talk.tell(f"{way.name}: {self._place()}{say_time(self._trier.took_s[-1] if self._trier.took_s else None)}")
        self._tried = way
        return self._trier.try_way(way)

    def _place(self) -> str:
        return f"{self._state.starts + 1} of at most {most_starts(self._state)}"

    def _take(self, way: Way, found: Sighting | str) -> None:
        place, others = self._place(), tuple(one for one in self._state.measured if one.way != way)
        if isinstance(found, str):
            self._failures[way] = found
            self._state = msgspec.structs.replace(self._state, measured=others, failed=self._state.failed | {way})
            self._talk.say(f"{way.name}: {found} ({place})")
            return
        self._state = msgspec.structs.replace(self._state, measured=(*others, found))
        kept = ", measured earlier today" if found.is_kept else ""
        self._talk.say(f"{way.name}: {band_of(found).tok_s:.1f} tok/s ({place}{kept})")

    def _next(self) -> Way | None:
        if (scout := next_scout(self._state)) is not None:
            return scout
        self._state = with_tiers(self._state, self._tunable.requests)
        now = guess_all(self._state)
        self._guesses |= now  # what was measured since keeps its last guess
        return next_way(self._state, now)

    def _has_time(self) -> bool:
        """Tells whether another way fits into the budget, by the longest one so far, and still the last start."""
        if not self._trier.took_s:
            return True
        spent_s, longest_s = time.monotonic() - self._began_s, max(self._trier.took_s)
        return spent_s + 2 * longest_s <= self._asking.budget_s

    def _adopt(self, way: Way, view: TuneView) -> TuneView:
        """Lets the service run that way, where it was up, and only then writes it down."""
        lines = self._writer.lines_of(way)
        if way == self._tunable.present or not self._writer.has_file:
            return msgspec.structs.replace(view, lines=lines)
        if self._was_up and (ready := self._trier.start(way)).state is not State.READY:
            return msgspec.structs.replace(view, chosen=None, why=f"{way.name} did not start again: {ready.why}")
        try:
            written = self._writer.write(way, view)
        except StokerError as problem:
            return msgspec.structs.replace(view, lines=lines, warnings=(*view.warnings, str(problem)))
        if self._was_up:
            self._trier.start(way, is_trial=False)  # from now on `rollback` leads from it to what was before
        return msgspec.structs.replace(view, written=written, lines=lines)

    @contextmanager
    def _restoring(self) -> Iterator[None]:
        """Puts the service back to what stoker.toml says, or to rest, unless what it says is what runs."""
        try:
            yield
        finally:
            name = self._tunable.wish.name
            if not self._was_up:
                stop_those_up(self._daemon, {name}, self._talk.tell)
            elif not self._writer.has_written:
                self._talk.tell(f"{name}: back to {self._tunable.present.name}")
                check_ready(self._trier.start(self._tunable.present), self._daemon.tail(name, LAST_LINES))

    def _end(self, chosen: Way | None, why: str) -> TuneView:
        return msgspec.structs.replace(
            _view(self._tunable, self._asking, self._state, self._guesses), chosen=chosen, why=why,
            ways=self._with_failures(),
        )  # fmt: skip

    def _with_failures(self) -> tuple[TriedWay, ...]:
        ways = _view(self._tunable, self._asking, self._state, self._guesses).ways
        return tuple(msgspec.structs.replace(one, why=self._failures.get(one.way, one.why)) for one in ways)

    def _nothing(self) -> StokerError:
        said = "; ".join(f"{way.name}: {why}" for way, why in self._failures.items())
        return StokerError(
            f"nothing could be measured of {self._tunable.wish.name}", why=said or f"after {say_s(self._asking.budget_s)}",
            next_step=f"`stoker up {self._tunable.wish.name}` shows how it starts as it is",
        )  # fmt: skip
