"""What an engine does while so many requests that came together are answered, step after step. Pure.

This is how benchmarks ask: all at once, and the rate is that of all tokens from the first of them to the last. While prompts
are still read, few requests decode; when the first answers are done, few are left. Both belong to the rate that is measured.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from statistics import NormalDist

from stoker.plan.speed.speculation import Drafting, draft_terms
from stoker.plan.speed.work import Served, Step, Terms, added, step_terms
from stoker.records import Record

BATCH_TOKENS = 8192
MOST_READING_STEPS, ALMOST_NONE = 500, 1e-6
USUAL_ANSWER, USUAL_SPREAD = 2400.0, 1.0


class Burst(Record, frozen=True):
    """Requests that come together: prompt and what stands before it, answer, and tokens that a step gives each request.

    `ends_early`: answers may be shorter than `answer`, as a model's own are; `reads_prompts`: prompts are read in the time
    that counts. `verified` is how many tokens of a request a step computes.
    """

    requests: int
    prompt: int = 0
    depth: int = 0
    answer: int = 256
    gained: float = 1.0
    verified: float = 1.0
    ends_early: bool = False
    reads_prompts: bool = True
    most_at_once: int = 256


def answer_lengths(burst: Burst) -> list[float]:
    """Returns how long the answers are: a model stops when it is done, some after a few words and some never."""
    if not burst.ends_early:
        return [float(burst.answer)] * burst.requests
    normal = NormalDist(math.log(USUAL_ANSWER), USUAL_SPREAD)
    count = burst.requests
    lengths = [min(float(burst.answer), math.exp(normal.inv_cdf((index + 0.5) / count))) for index in range(count)]
    # Who comes first has nothing to do with how long the answer is.
    stride = next(step for step in (7, 5, 3, 1) if math.gcd(step, count) == 1)
    return [lengths[(index * stride + count // 3) % count] for index in range(count)]


class _Request:
    """One request: prompt tokens that are not read yet, answer tokens that are still to come and that came."""

    def __init__(self, unread: float, left: float) -> None:
        self.unread, self.left, self.given = unread, left, 0.0


def burst_work(served: Served, burst: Burst, drafting: Drafting | None = None) -> tuple[Terms, float]:
    """Returns all terms of the time from the first token to the last, and the tokens that are given in it."""
    total: Terms = defaultdict(float)
    tokens = 0.0
    for step, repeats, given in steps_of(served, burst):
        tokens += given
        terms = step_terms(served, step)
        if drafting is not None:
            terms = added(terms, draft_terms(served, drafting, step))
        for factors, amount in terms.items():
            total[factors] += amount * repeats
    return dict(total), tokens


class _Reading:
    """The prompts that wait to be read, first come first served, some tokens of several in one step."""

    def __init__(self, burst: Burst, piece: int) -> None:
        self.whole = float(burst.prompt + burst.depth) if burst.reads_prompts else 0.0
        self.piece = piece
        self.at_once = max(1, round(self.whole * burst.requests / piece / MOST_READING_STEPS))

    def next_step(self, waiting: list[_Request], burst: Burst, running: int) -> tuple[float, float]:
        """Reads on, and returns how many tokens each of the next `at_once` steps reads, and at which depth it began."""
        room = max(1.0, self.piece - running * burst.verified) * self.at_once
        begun, left = self.whole - waiting[0].unread, room
        for request in waiting[: burst.most_at_once - running]:
            taken = min(left, request.unread)
            request.unread -= taken
            left -= taken
            if not left:
                break
        return (room - left) / self.at_once, begun


def steps_of(served: Served, burst: Burst) -> Iterator[tuple[Step, float, float]]:
    """Yields the steps from the first token on, how often each is repeated, and the tokens given in them."""
    reading = _Reading(burst, served.shape.piece or BATCH_TOKENS)
    waiting = [_Request(reading.whole, length) for length in answer_lengths(burst)]
    running: list[_Request] = []
    has_begun = False
    while waiting or running:
        while waiting and not waiting[0].unread and len(running) < burst.most_at_once:
            running.append(waiting.pop(0))
        has_begun = has_begun or bool(running)
        read, begun, repeats = 0.0, 0.0, max(1.0, min((one.left for one in running), default=1.0) / burst.gained)
        if waiting and len(running) < burst.most_at_once:
            read, begun = reading.next_step(waiting, burst, len(running))
            repeats = float(reading.at_once)
        given = sum(min(one.left, burst.gained * repeats) for one in running)
        if has_begun:
            depth = burst.prompt + burst.depth + sum(one.given for one in running) / max(1, len(running))
            yield Step(len(running), burst.verified, depth + repeats * burst.gained / 2, read, begun), repeats, given
        for one in running:
            one.left -= burst.gained * repeats
            one.given += burst.gained * repeats
        running = [one for one in running if one.left > ALMOST_NONE]
