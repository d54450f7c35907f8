"""Makes the requests of a cell, whole and as they go over the wire, before any clock starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


class Composer:
    """Makes requests of a cell; the same seed makes the same, and no two begin alike unless the cell shares its prefix.

    `more` goes into every body, as a temperature. Of an endless load one text is fitted, and only its heads change: its
    requests are made while it runs.
    """

    def __init__(
        self,
        server: Server,
        measure: Measure,
        cell: BenchCell,
        seed: int,
        more: Mapping[str, Any],
        *,
        is_endless: bool = False,
    ) -> None:
        self._server, self._measure, self._cell = server, measure, cell
        self._more = {**more, **({} if cell.shares_prefix else NO_CACHE.get(server.engine, {}))}
        self._seed = f"{seed}:{cell.content}:{cell.depth_tokens}:{cell.prompt_tokens}"
        self._serial = 0
        self._made = {True: 0, False: 0}  # warm-ups, and requests that count
        self._fits_each = measure.is_cheap and not is_endless
        self._talks: dict[int, list[Message]] = {}
        self._turns: dict[int, list[str]] = {}

    def jobs(self, orders: Sequence[Order], *, is_warmup: bool = False) -> list[Job]:
        """Returns the requests for these orders; how long it warmed up changes nothing of what is asked afterwards."""
        self._talks, self._turns = {}, {}
        jobs = []
        for number, order in enumerate(orders):
            self._made[is_warmup] += 1
            self._serial = -self._made[True] if is_warmup else self._made[False]
            jobs.append(self._job(number, order))
        return jobs

    def _job(self, number: int, order: Order) -> Job:
        past = self._past()
        prompt = self._fit("prompt", self._cell.depth_tokens + order.prompt_tokens, past, is_first=not past)
        messages = [*past, {"role": "user", "content": prompt.text}]
        if self._cell.turns > 1:
            self._talks[number] = messages
            self._turns[number] = [self._alone(order.prompt_tokens, turn) for turn in range(1, self._cell.turns)]
        counted = prompt.tokens if self._measure.is_exact else None
        return Job(self._request(messages, order.new_tokens), order.new_tokens, counted, order.due_s, number)

    def _request(self, messages: Sequence[Message], new_tokens: int) -> bytes:
        body = self._server.body(messages, new_tokens, self._more)
        return self._server.chat.origin.request("POST", "/chat/completions", msgspec.json.encode(body))

    def _past(self) -> list[Message]:
        """Returns the conversation before the prompt: as many tokens as the cell's depth, read by the model."""
        if not self._cell.depth_tokens:
            return []
        text = self._fit("past", self._cell.depth_tokens, (), is_first=True).text
        return [{"role": "user", "content": text}, READ]

    def _fit(self, part: str, target: int, past: Sequence[Message], *, is_first: bool) -> Fitted:
        """Returns a text that makes the messages so many tokens; each text is its own, where counting is cheap."""
        is_shared = self._cell.shares_prefix and is_first
        serial = 0 if is_shared else self._serial
        head = make_head(Random(f"{self._seed}:{part}:head:{serial}")) if is_first else ""
        order = Random(f"{self._seed}:{part}:{serial if self._fits_each else 0}")
        passage = Passage(self._cell.content, order, head, self._measure.costs(self._cell.content))
        kind = (f"{part} {self._cell.content} {self._cell.depth_tokens if past else 0}", target)
        known = self._measure.fitted.get(kind)
        if known is not None and not self._fits_each:
            return known._replace(text=passage.text(known.pieces) + known.filler)

        def count(text: str) -> int:
            return self._measure.count([*past, {"role": "user", "content": text}])

        past_tokens = self._cell.depth_tokens if past else 0
        start = known.estimate if known else target - past_tokens
        self._measure.fitted[kind] = found = fit(passage, target, start, count)
        return found

    def _alone(self, tokens: int, turn: int) -> str:
        """Returns what is said in a later turn: so many tokens by itself, with what the template adds to one message."""
        random = Random(f"{self._seed}:turn:{self._serial}:{turn}")
        passage = Passage(self._cell.content, random, "", self._measure.costs(self._cell.content))
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
