"""How many people one machine serves, and how fast: continuous batching, step after step, with the fitted costs. Pure.

Everybody thinks for a while, asks, reads the answer as it comes, and thinks again. An engine answers all that run in one
step and reads new prompts a piece at a time in the same steps, so that everybody waits a little longer then.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from functools import cache
from itertools import count

from stoker.plan.speed.cost import cost_s
from stoker.plan.speed.prediction import Fit
from stoker.plan.speed.schedule import BATCH_TOKENS
from stoker.plan.speed.speculation import Drafting, draft_terms
from stoker.plan.speed.work import Served, Step, added, step_terms
from stoker.records import CapacityView, Record

GOLDEN = 0.6180339887498949  # its multiples fill 0..1 evenly: chance without a generator
ASKED_EACH, ASKED_LEAST, WARM_UP = 12, 60, 2
DEPTH_STEP = 512
MOST_AT_ONCE = 64
SLOW = 0.1


class Habits(Record, frozen=True):
    """What people do: how many, how long they think, and what they ask and get, in tokens."""

    users: int
    think_s: float
    prompt: int = 2000
    answer: int = 400
    boxes: int = 1
    most_at_once: int = MOST_AT_ONCE


class _Asked:
    def __init__(self, user: int, at_s: float, unread: float) -> None:
        self.user, self.at_s, self.unread = user, at_s, unread
        self.first_s: float | None = None
        self.given = 0.0


class Engine:
    """The seconds of a step of one machine, remembered."""

    def __init__(self, served: Served, fit: Fit, drafting: Drafting | None) -> None:
        self.gained = drafting.accept_length if drafting else 1.0
        self.piece = served.shape.piece or BATCH_TOKENS
        verified = drafting.draft_tokens + 1.0 if drafting else 1.0

        @cache
        def step_s(requests: int, depth: int, prompt: int) -> float:
            step = Step(requests, verified, depth * DEPTH_STEP, prompt)
            terms = step_terms(served, step)
            if drafting is not None:
                terms = added(terms, draft_terms(served, drafting, step))
            return cost_s(terms, fit.factors)

        self.step_s = step_s


def think_times(mean_s: float, seed: int) -> Iterator[float]:
    """Yields how long people think: exponentially distributed, the same for the same seed."""
    for index in count(1):
        yield -mean_s * math.log(1.0 - (seed * 0.754877666 + index * GOLDEN) % 1.0 * 0.999)


def simulate(served: Served, habits: Habits, fit: Fit, drafting: Drafting | None = None, seed: int = 0) -> CapacityView:
    """Returns what these people find, each machine serving its share of them."""
    users = -(-habits.users // habits.boxes)
    run = _Run(Engine(served, fit, drafting), habits, users, think_times(habits.think_s, seed))
    wanted = max(ASKED_LEAST, ASKED_EACH * users)
    while len(run.done) < wanted:
        run.advance()
    seen = run.done[WARM_UP * users :] if len(run.done) > (WARM_UP + 1) * users else run.done
    rates = sorted(rate for rate, _ in seen)
    waits = sorted(wait for _, wait in seen)
    place = int(SLOW * len(seen))
    return CapacityView(
        users=habits.users, boxes=habits.boxes, think_s=habits.think_s, tok_s=rates[len(rates) // 2],
        slow_tok_s=rates[place], ttft_s=waits[len(waits) // 2], slow_ttft_s=waits[-1 - place], busy=run.busy_s / run.now_s,
        total_tok_s=run.tokens / run.now_s * habits.users / users,
    )  # fmt: skip


class _Run:
    def __init__(self, engine: Engine, habits: Habits, users: int, thinks: Iterator[float]) -> None:
        self.engine, self.habits, self.thinks = engine, habits, thinks
        self.now_s = self.busy_s = self.tokens = 0.0
        self.thinking = [(next(thinks), user) for user in range(users)]
        heapq.heapify(self.thinking)
        self.waiting: list[_Asked] = []
        self.running: list[_Asked] = []
        self.done: list[tuple[float, float]] = []

    def advance(self) -> None:
        """Does the next steps, up to the next event: a question, a prompt that was read, an answer that is done."""
        while self.thinking and self.thinking[0][0] <= self.now_s:
            at_s, user = heapq.heappop(self.thinking)
            self.waiting.append(_Asked(user, at_s, float(self.habits.prompt)))
        if not self.waiting and not self.running:
            self.now_s = self.thinking[0][0]
            return
        read = self._read_prompts()
        depth = sum(one.given for one in self.running) / max(1, len(self.running)) + self.habits.prompt
        step_s = self.engine.step_s(len(self.running), int(depth / DEPTH_STEP), int(read))
        repeats = 1 if read else self._until_event(step_s)
        self.now_s += repeats * step_s
        self.busy_s += repeats * step_s
        self._give(repeats)

    def _read_prompts(self) -> float:
        left = float(max(1, self.engine.piece - len(self.running)))
        read = 0.0
        for one in self.waiting[: max(0, self.habits.most_at_once - len(self.running))]:
            taken = min(left - read, one.unread)
            one.unread -= taken
            read += taken
        return read

    def _until_event(self, step_s: float) -> int:
        to_finish = min(self.habits.answer - one.given for one in self.running) / self.engine.gained
        to_ask = (self.thinking[0][0] - self.now_s) / step_s if self.thinking else math.inf
        return max(1, math.ceil(min(to_finish, to_ask)))

    def _give(self, repeats: int) -> None:
        for one in self.running:
            given = min(self.engine.gained * repeats, self.habits.answer - one.given)
            one.given += given
            self.tokens += given
        for one in [one for one in self.running if one.given >= self.habits.answer]:
            self.running.remove(one)
            spent_s = self.now_s - (one.first_s or 0.0)
            self.done.append(((self.habits.answer - 1) / max(spent_s, 1e-9), (one.first_s or 0.0) - one.at_s))
            heapq.heappush(self.thinking, (self.now_s + next(self.thinks), one.user))
        for one in [one for one in self.waiting if not one.unread]:
            self.waiting.remove(one)
            one.first_s, one.given = self.now_s, 1.0
            self.tokens += 1
            self.running.append(one)
