"""A service and its users, made up: sessions, requests, idle nights, restarts and gaps, with a fault from some moment on.

Every 15 s it yields what an engine's counters would say, and the gauge that SGLang shows of its last batch. A seed decides
everything; a month takes a second or two. Sizes are those of one machine: 9 verify steps a second, 800 tokens a second read.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from stoker.watch.samples import EngineSample

STEP_S, DAY_S, HOUR_S = 15.0, 86400.0, 3600.0
STEPS_PER_S, PREFILL_PER_S = 9.0, 800.0
# In logarithms of odds: 0.07 and 0.04 around a rate of 0.35, less around a very low or a very high one.
REQUEST_SCATTER, SESSION_SCATTER = 0.31, 0.18


@dataclass(frozen=True)
class Work:
    """A kind of work: what of its drafts is accepted, and its middle prompt and answer in tokens."""

    rate: float
    prompt: float
    answer: float


CODE, CHAT, PROSE = Work(0.36, 4000, 350), Work(0.31, 900, 300), Work(0.24, 250, 900)


@dataclass(frozen=True)
class Load:
    """Who asks: on working days between two hours or always, in sessions of that work; `think_s` lies between requests."""

    works: tuple[tuple[Work, float], ...] = ((CODE, 0.7), (CHAT, 0.3))
    from_h: float = 8.0
    to_h: float = 19.0
    weekends: bool = False
    think_s: float = 25.0
    pause_s: float = 900.0
    drafts_a_step: int = 3


ALWAYS = Load(from_h=0.0, to_h=24.0, weekends=True, think_s=8.0, pause_s=120.0)


@dataclass(frozen=True)
class Trouble:
    """What goes wrong: a factor of the rate by time, other work from some moment on, times of restarts and of gaps."""

    factor: Callable[[float], float] = lambda at_s: 1.0
    other_from_s: float = math.inf
    other: Work = PROSE
    restarts_s: tuple[float, ...] = ()
    gaps_s: tuple[tuple[float, float], ...] = ()


@dataclass
class _Engine:
    launch: int = 1
    generated: float = 0.0
    prompted: float = 0.0
    drafted: int = 0
    accepted: int = 0
    steps: int = 0
    gauge: float | None = None

    def restart(self) -> None:
        """Counters begin anew, and the gauge says nothing until the first batch."""
        self.launch, self.gauge = self.launch + 1, None
        self.generated = self.prompted = 0.0
        self.drafted = self.accepted = self.steps = 0


@dataclass
class _User:
    """One person, or one agent: what is left of the request under way, and when the next one comes."""

    prompt: float = 0.0
    answer: float = 0.0
    rate: float = 0.0
    next_s: float = 0.0
    session_ends_s: float = 0.0
    offset: float = 0.0
    work: Work = field(default=CODE)


def play(load: Load, trouble: Trouble, days: float, seed: int) -> Iterator[tuple[EngineSample, float | None]]:
    """Yields the looks at an engine and its gauge."""
    chance, engine, user = random.Random(seed), _Engine(), _User()
    restarts = list(trouble.restarts_s)
    for number in range(int(days * DAY_S / STEP_S)):
        at_s = number * STEP_S
        if restarts and at_s >= restarts[0]:
            restarts.pop(0)
            engine.restart()
            user.answer = user.prompt = 0.0
        _work(load, trouble, at_s, chance, engine, user)
        if not any(begin <= at_s < end for begin, end in trouble.gaps_s):
            yield _sample(at_s, engine, user), engine.gauge


def _sample(at_s: float, engine: _Engine, user: _User) -> EngineSample:
    running = int(user.prompt > 0 or user.answer > 0)
    totals = int(engine.generated), int(engine.prompted), engine.drafted, engine.accepted, engine.steps
    return EngineSample(at_s, engine.launch, running, running, 0, *totals, work=totals)


def _work(load: Load, trouble: Trouble, at_s: float, chance: random.Random, engine: _Engine, user: _User) -> None:
    """Lets fifteen seconds pass."""
    left_s, steps, accepted = STEP_S, 0, 0
    while left_s > 0:
        now_s = at_s + STEP_S - left_s
        if user.prompt <= 0 and user.answer <= 0:
            if user.next_s > now_s:
                left_s -= min(left_s, user.next_s - now_s)
                continue
            if not _ask(load, trouble, now_s, chance, user):
                continue
        if user.prompt > 0:
            took_s = min(left_s, user.prompt / PREFILL_PER_S)
            engine.prompted += took_s * PREFILL_PER_S
            user.prompt, left_s = user.prompt - took_s * PREFILL_PER_S, left_s - took_s
            if user.prompt > 1e-6:
                break
            user.prompt = 0.0
            continue
        rate = user.rate * trouble.factor(now_s)
        step_tokens = 1 + load.drafts_a_step * rate
        done = max(1, min(math.ceil(user.answer / step_tokens), int(left_s * STEPS_PER_S)))
        took = _draw(chance, done * load.drafts_a_step, rate)
        steps, accepted = steps + done, accepted + took
        engine.generated += done + took
        user.answer, left_s = user.answer - done - took, left_s - max(done / STEPS_PER_S, 0.05)
        if user.answer <= 0:
            user.answer, user.next_s = 0.0, at_s + STEP_S - left_s + chance.expovariate(1 / load.think_s)
    if steps:
        engine.steps, engine.accepted = engine.steps + steps, engine.accepted + accepted
        engine.drafted += steps * load.drafts_a_step
        engine.gauge = accepted / (steps * load.drafts_a_step)


def _ask(load: Load, trouble: Trouble, now_s: float, chance: random.Random, user: _User) -> bool:
    """Begins the next request, or waits for the next session; False where nobody asks now."""
    if now_s >= user.session_ends_s:
        begins_s = next_opening(load, now_s + chance.expovariate(1 / load.pause_s))
        user.next_s, user.session_ends_s = begins_s, begins_s + chance.uniform(600, 3600)
        user.offset = chance.gauss(0, SESSION_SCATTER)
        works, shares = zip(*load.works, strict=True)
        user.work = chance.choices(works, shares)[0]
        if begins_s > now_s:
            return False
    work = trouble.other if now_s >= trouble.other_from_s else user.work
    user.prompt, user.answer = (middle * math.exp(chance.gauss(0, 0.7)) for middle in (work.prompt, work.answer))
    scatter = user.offset + chance.gauss(0, REQUEST_SCATTER)
    user.rate = 1 / (1 + (1 / work.rate - 1) * math.exp(-scatter))
    return True


def next_opening(load: Load, at_s: float) -> float:
    """Returns when somebody may ask next, from a time on."""
    while True:
        day, hour = divmod(at_s, DAY_S)
        is_open = load.weekends or day % 7 < 5
        if is_open and load.from_h * HOUR_S <= hour < load.to_h * HOUR_S:
            return at_s
        at_s = day * DAY_S + load.from_h * HOUR_S + (DAY_S if hour >= load.from_h * HOUR_S else 0)


def _draw(chance: random.Random, count: int, share: float) -> int:
    """Returns how many of a count were accepted; the normal form of the binomial, which is close enough from ten on."""
    spread = math.sqrt(max(0.0, count * share * (1 - share)))
    return min(count, max(0, round(chance.gauss(count * share, spread))))
