"""Measures an endpoint: each cell of a grid in turn, handed on as soon as it is known."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from stoker import __version__
from stoker.bench.cell import Settings, measure_cell
from stoker.bench.composing import Composer
from stoker.bench.goodput import find_knees
from stoker.bench.lines import Lines
from stoker.bench.machine import MachineWatch
from stoker.bench.measures import Measure
from stoker.bench.processes import engine_seconds
from stoker.bench.prompts import refuse_impossible, units_of
from stoker.bench.repeat import Bench
from stoker.bench.server import Server, meet, read_version
from stoker.box import LocalBox, clock_s
from stoker.records import BenchCell, BenchRun, BenchSubject, CellResult, Target

TOOL = "stoker"
Note = Callable[[CellResult], None]


class Wanted(NamedTuple):
    """What to measure of whom; `words` are how it was asked for, `tokenizer` counts where the server cannot."""

    target: Target
    subject: BenchSubject
    cells: Sequence[BenchCell]
    settings: Settings
    words: tuple[str, ...] = ()
    tokenizer: Callable[[str], int] | None = None


class Live(NamedTuple):
    """Who is told: `note` of each cell as soon as it is measured, `tell` of what is being done."""

    note: Note
    tell: Callable[[BenchCell, str], None]


def bench(wanted: Wanted, live: Live) -> BenchRun:
    """Returns everything that was measured, also where somebody interrupted it; raises StokerError before the first cell."""
    began_at = clock_s()
    for content in {cell.content for cell in wanted.cells}:
        units_of(content)
    with ExitStack() as stack:
        server = meet(wanted.target, wanted.subject.engine)
        stack.callback(server.close)
        measure = Measure(server, wanted.tokenizer)
        _refuse(wanted.cells, server, measure)
        tools = _tools(server, measure, stack)._replace(is_stopped=stack.enter_context(_stopping()))
        results = _measure_all(wanted, tools, measure, live)
        subject = _subject(wanted, server)
    return BenchRun(
        id=None, tool=TOOL, tool_version=__version__, began_at=began_at, took_s=clock_s() - began_at,
        seed=wanted.settings.seed, is_whole=len(results) == len(wanted.cells) and all(one.is_whole for one in results),
        subject=subject, cells=tuple(results), words=wanted.words, slo=wanted.settings.slo, knees=find_knees(results),
    )  # fmt: skip


@contextmanager
def _stopping() -> Iterator[Callable[[], bool]]:
    """Makes the first Ctrl-C a wish to stop, which is looked for now and then, and the second one the end at once."""
    pressed: list[int] = []
    before = signal.getsignal(signal.SIGINT)

    def stop(number: int, frame: object) -> None:
        pressed.append(number)
        signal.signal(signal.SIGINT, before)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False  # only the main thread is told of signals
        return
    signal.signal(signal.SIGINT, stop)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)


def _refuse(cells: Sequence[BenchCell], server: Server, measure: Measure) -> None:
    lengths = [(one.depth_tokens, one.prompt_tokens, one.new_tokens or 0) for one in cells if one.load.arrivals != "trace"]
    refuse_impossible(lengths, server.context_tokens, measure.least_tokens())


def _tools(server: Server, measure: Measure, stack: ExitStack) -> Bench:
    origin = server.chat.origin
    lines = Lines(origin, reuses=server.reuses)
    stack.callback(lines.close)
    watch = None
    if _is_here(server):
        address = urlsplit(server.target.engine_url or server.target.url)
        box = LocalBox()
        watch = MachineWatch(box, engine_seconds(box, address.port or 0))
        stack.callback(watch.close)
    return Bench(server, lines, watch, measure.text if measure.is_cheap else None)


def _is_here(server: Server) -> bool:
    """Tells whether this machine's own processor and memory are those that are measured."""
    return server.chat.origin.is_here and server.target.box is None


def _measure_all(wanted: Wanted, tools: Bench, measure: Measure, live: Live) -> list[CellResult]:
    results: list[CellResult] = []
    settings = wanted.settings
    more = {**settings.more, **tools.server.salt()}
    for cell in wanted.cells:
        composer = Composer(tools.server, measure, cell, settings.seed, more, fits_one=settings.soak_s is not None)
        result = measure_cell(tools, composer, cell, settings, partial(live.tell, cell))
        results.append(result)
        live.note(result)
        if not result.is_whole:
            break
    return results


def _subject(wanted: Wanted, server: Server) -> BenchSubject:
    known = wanted.subject
    return msgspec.structs.replace(
        known,
        engine=known.engine or server.engine,
        engine_version=known.engine_version or read_version(server),
        machine=known.machine or (LocalBox().uname()[0] if _is_here(server) else None),
    )
