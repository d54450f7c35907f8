"""Makes the requests of a cell, whole and as they go over the wire, before any clock starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from itertools import count
from random import Random
from typing import Any, NamedTuple

import msgspec

from stoker.bench.events import NoStream, read_stream
from stoker.bench.exchange import OK, Exchange, Job
from stoker.bench.measures import Measure
from stoker.bench.prompts import Fitted, Passage, fit, make_head
from stoker.bench.server import NO_CACHE, Server
from stoker.records import BenchCell

Message = Mapping[str, str]
READ = {"role": "assistant", "content": "I have read it all. What do you want to know?"}


class Order(NamedTuple):
    """One request to be made: its lengths, and when it is due."""

    prompt_tokens: int
    new_tokens: int
    due_s: float | None = None


def repeat_name(number: int) -> str:
    """Returns what names a repeat that counts, beside seed and cell."""
    return f"repeat {number}"


def soak_names() -> Iterator[str]:
    """Yields what names each request of a load that is kept up, in turn."""
    return (f"soak {number}" for number in count())


class Composer:
    """Makes requests of a cell; the same seed makes the same, and no two begin alike unless the cell shares its prefix.

    What a request says depends on the seed, the cell, the repeat and its place there, and not on what was asked before: so
    repeats of two runs are pairs, however many warm-ups each of them took. `more` goes into every body, as a temperature.
    Where it `fits_one`, one text is fitted, and only its heads change: an endless load's requests are made while it runs.
    """

    def __init__(
        self,
        server: Server,
        measure: Measure,
        cell: BenchCell,
        seed: int,
        more: Mapping[str, Any],
        *,
        fits_one: bool = False,
    ) -> None:
        self._server, self._measure, self._cell = server, measure, cell
        self._more = {**more, **({} if cell.shares_prefix else NO_CACHE.get(server.engine, {}))}
        # Of the whole cell: one with more requests at once must not find the prompts of the one before in a cache.
        self._seed = f"{seed}:{msgspec.json.encode(cell).decode()}"
        # Of its texts alone: where looking costs a trial, cells with the same lengths use one fitted text.
        self._texts_seed = f"{seed}:{cell.content}:{cell.depth_tokens}:{cell.prompt_tokens}"
        self._fits_each = measure.is_cheap and not fits_one
        self._talks: dict[int, list[Message]] = {}
        self._turns: dict[int, list[str]] = {}

    def for_warmup(self) -> Composer:
        """Returns what makes requests that nothing is told of: of one fitted text, since looking at each takes the longest.

        A shared prefix has to be the one that is measured next, so that the server keeps it.
        """
        if self._cell.shares_prefix or not self._fits_each:
            return self
        one = copy(self)
        one._fits_each, one._talks, one._turns = False, {}, {}
        return one

    def jobs(self, orders: Sequence[Order], repeat: str) -> list[Job]:
        """Returns the requests for these orders; `repeat` names what they are asked in, as no other does."""
        self._talks, self._turns = {}, {}
        return [self._job(f"{repeat}:{number}", number, order) for number, order in enumerate(orders)]

    def _job(self, name: str, number: int, order: Order) -> Job:
        past = self._past(name)
        prompt = self._fit(name, "prompt", self._cell.depth_tokens + order.prompt_tokens, past)
        messages = [*past, {"role": "user", "content": prompt.text}]
        if self._cell.turns > 1:
            self._talks[number] = messages
            turns = range(1, self._cell.turns)
            self._turns[number] = [self._alone(f"{name}:turn:{turn}", order.prompt_tokens) for turn in turns]
        counted = prompt.tokens if self._measure.is_exact else None
        return Job(self._request(messages, order.new_tokens), order.new_tokens, counted, order.due_s, number)

    def _request(self, messages: Sequence[Message], new_tokens: int) -> bytes:
        body = self._server.body(messages, new_tokens, self._more)
        return self._server.chat.origin.request("POST", "/chat/completions", msgspec.json.encode(body))

    def _past(self, name: str) -> list[Message]:
        """Returns the conversation before the prompt: as many tokens as the cell's depth, read by the model."""
        if not self._cell.depth_tokens:
            return []
        text = self._fit(name, "past", self._cell.depth_tokens, ()).text
        return [{"role": "user", "content": text}, READ]

    def _fit(self, name: str, part: str, target: int, past: Sequence[Message]) -> Fitted:
        """Returns a text that makes the messages so many tokens; each text is its own, where counting is cheap."""
        passage = self._passage(name, part, is_first=not past)
        whose = "each its own" if self._fits_each else "one for all"
        kind = (f"{whose} {part} {self._cell.content} {self._cell.depth_tokens if past else 0}", target)
        known = self._measure.fitted.get(kind)
        if known is not None and not self._fits_each:
            return known._replace(text=passage.text(known.pieces) + known.filler)

        def count(text: str) -> int:
            return self._measure.count([*past, {"role": "user", "content": text}])

        past_tokens = self._cell.depth_tokens if past else 0
        start = known.estimate if known else target - past_tokens
        self._measure.fitted[kind] = found = fit(passage, target, start, count)
        return found

    def _passage(self, name: str, part: str, *, is_first: bool) -> Passage:
        """Returns what a message is taken from; the first of each request begins as no other does, unless it is shared."""
        own = f"{self._seed}:{part}:{'shared' if self._cell.shares_prefix and is_first else name}"
        head = make_head(Random(f"{own}:head")) if is_first else ""
        order = Random(own if self._fits_each else f"{self._texts_seed}:{part}")
        return Passage(self._cell.content, order, head, self._measure.costs(self._cell.content))

    def _alone(self, name: str, tokens: int) -> str:
        """Returns what is said in a later turn: so many tokens by itself, with what the template adds to one message."""
        passage = Passage(self._cell.content, Random(f"{self._seed}:{name}"), "", self._measure.costs(self._cell.content))
        known = next(iter(self._measure.fitted.values()))
        if not self._measure.is_cheap:
            return passage.text(known.pieces)
        added = self._measure.added([{"role": "user", "content": ""}])
        return fit(passage, tokens, tokens - added, lambda text: self._measure.text(text) + added).text

    def follow(self, exchange: Exchange) -> Job | None:
        """Returns the next turn of a talk, with what was answered; None where it is over, or was not answered."""
        job = exchange.job
        turns = self._turns.get(job.talk, [])
        if exchange.status != OK or exchange.problem or job.turn >= len(turns):
            return None
        try:
            said = "".join(one.text for one in read_stream(exchange.pieces).texts)
        except NoStream:
            return None
        more = [{"role": "assistant", "content": said}, {"role": "user", "content": turns[job.turn]}]
        self._talks[job.talk] = messages = [*self._talks[job.talk], *more]
        return Job(self._request(messages, job.new_tokens), job.new_tokens, None, None, job.talk, job.turn + 1)
