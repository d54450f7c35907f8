"""Asks an endpoint the repeats of a cell one by one, each whenever its turn has come: what others are compared with."""

from __future__ import annotations

from contextlib import ExitStack
from typing import NamedTuple

from stoker.bench.composing import Composer, Order, repeat_name
from stoker.bench.lines import Lines
from stoker.bench.measures import Measure
from stoker.bench.player import Rules
from stoker.bench.repeat import Bench, measure
from stoker.bench.server import meet
from stoker.records import BenchCell, BenchRepeat, Target

GREEDY = {"temperature": 0.0}
SILENCE_S = 300.0


class Turns(NamedTuple):
    """An endpoint and a cell of a closed load; number i asks what a benchmark's repeat i of that cell and seed asks."""

    bench: Bench
    composer: Composer
    cell: BenchCell

    def play(self, number: int) -> BenchRepeat:
        """Returns what one repeat gave; requests that failed are in it."""
        at_once = self.cell.load.concurrency or 1
        orders = [Order(self.cell.prompt_tokens, self.cell.new_tokens or 0)] * at_once
        rules = Rules(SILENCE_S, at_once, None, lambda: False)
        return measure(self.bench, self.composer.jobs(orders, repeat_name(number)), at_once, rules).repeat


def take_turns(target: Target, engine: str | None, cell: BenchCell, seed: int, stack: ExitStack) -> Turns:
    """Returns an endpoint as it is asked by turns, greedily, until the stack ends.

    Raises StokerError where it answers no chat.
    """
    server = meet(target, engine)
    stack.callback(server.close)
    lines = Lines(server.chat.origin, reuses=server.reuses)
    stack.callback(lines.close)
    counting = Measure(server, None)
    bench = Bench(server, lines, None, counting.text if counting.is_cheap else None)
    return Turns(bench, Composer(server, counting, cell, seed, {**GREEDY, **server.salt()}), cell)
