"""Asks one endpoint, within the run's budget, and keeps every exchange as evidence."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from stoker.counters import Counters, read_counters
from stoker.probes.kit.answer import Answer, Completion, join_chunks, read_answer, read_chunks
from stoker.probes.kit.events import Event, read_events
from stoker.probes.kit.evidence import HIDDEN, HIDDEN_ENGINE, Secrets, keep
from stoker.probes.kit.findings import OutOfTime
from stoker.probes.kit.reply import OK, check_reply
from stoker.probes.kit.wire import Call, Reply, Wire
from stoker.records import Exchange, Target

REQUEST_LIMIT_S = 30.0  # SGLang's first request after a start took 30 s on a GB10; nothing else may
METRICS_LIMIT_S = 5.0
Messages = Sequence[dict[str, Any]]


class Stream(NamedTuple):
    """A stream: its events with their times, what they hold, and the answer that a client makes of it."""

    events: list[Event]
    chunks: list[Completion]
    answer: Answer


class Asker:
    """Asks a target until `end_s` on the monotonic clock.

    `calm` goes into every chat: what keeps this model from thinking first; `lively` is what makes it think, None where that
    was not looked for yet. Both are found by `calm.py`. `engine_model` is what the engine itself calls the model.
    """

    def __init__(self, target: Target, wire: Wire, end_s: float, parent: Asker | None = None) -> None:
        self.target = target
        self.calm: dict[str, Any] = {}
        self.lively: tuple[dict[str, Any], ...] | None = None
        self.engine_model = target.model
        self._wire = wire
        self._end_s = end_s
        self._kept: list[Exchange] = parent._kept if parent else []
        # Also where another address is asked without a key: no report may hold any of them.
        self.secrets: Secrets = parent.secrets if parent else _secrets(target)

    def engine(self) -> Asker | None:
        """Returns the asker of the engine that should serve; None where that cannot be asked by itself."""
        url = self.target.engine_url
        return None if url is None else self.at(f"{url}/v1", self.target.engine_key, self.engine_model)

    def at(self, url: str, key: str | None = None, model: str | None = None) -> Asker:
        """Returns an asker at another address, within the same budget and with the same evidence."""
        target = msgspec.structs.replace(self.target, url=url, key=key, model=model or self.target.model)
        asker = Asker(target, self._wire, self._end_s, self)
        asker.calm, asker.lively = self.calm, self.lively
        return asker

    async def send(
        self, path: str, body: object = None, *, method: str = "POST", headers: dict[str, str] | None = None,
        limit_s: float = REQUEST_LIMIT_S, until: Callable[[bytes], bool] | None = None,
    ) -> Reply:  # fmt: skip
        """Returns what came back, whatever it is; `headers` replace those with the key. Raises OutOfTime."""
        raw = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
        own = self._key_headers(self.target.key) if headers is None else headers
        typed = {"content-type": "application/json"} if raw else {}
        return await self._send(
            Call(method, f"{self.target.url}{path}", {**self.target.headers, **typed, **own}, raw, limit_s, until)
        )

    async def send_beside(self, path: str, body: object, *, with_key: bool = False) -> Reply:
        """Returns what comes back from a path beside `/v1`; without a body it is a GET."""
        root = self.at(self.target.url.removesuffix("/v1"), self.target.key if with_key else None)
        return await root.send(path, body, method="GET" if body is None else "POST")

    async def _send(self, call: Call) -> Reply:
        left_s = self._end_s - time.monotonic()
        if left_s <= 0:
            raise OutOfTime
        reply = await self._wire.send(call._replace(limit_s=min(call.limit_s, left_s)))
        self._kept.append(keep(call, reply, self.secrets))
        if reply.timed_out and left_s < call.limit_s:
            raise OutOfTime
        return reply

    @staticmethod
    def _key_headers(key: str | None) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"} if key else {}

    def body(self, asked: str | Messages, max_tokens: int, more: dict[str, Any]) -> dict[str, Any]:
        """Returns the body of a chat: greedy, and without thinking unless `more` has another `calm`."""
        messages = [{"role": "user", "content": asked}] if isinstance(asked, str) else asked
        plain = {"model": self.target.model, "messages": messages, "max_tokens": max_tokens, "temperature": 0}
        return {**plain, **more.pop("calm", self.calm), **more}

    async def chat(self, asked: str | Messages, *, max_tokens: int, limit_s: float = REQUEST_LIMIT_S, **more: Any) -> Answer:
        """Returns the answer to a chat; raises Declined where it is refused, Trouble where it is none."""
        return read_answer(await self.send("/chat/completions", self.body(asked, max_tokens, more), limit_s=limit_s))

    async def stream(self, asked: str | Messages, *, max_tokens: int, **more: Any) -> Stream:
        """Returns a streamed chat; raises Declined and Trouble as `chat` does."""
        body = self.body(asked, max_tokens, {"stream": True, **more})
        return read_stream(await self.send("/chat/completions", body))

    async def read_counters(self) -> Counters | None:
        """Returns what the engine itself has counted; None where it does not tell."""
        url = self.target.engine_url or self.target.url.removesuffix("/v1")
        key = self.target.engine_key if self.target.engine_url else self.target.key
        reply = await self._send(Call("GET", f"{url}/metrics", self._key_headers(key), b"", METRICS_LIMIT_S))
        return read_counters(reply.body.decode(errors="replace")) if reply.status == OK and not reply.problem else None

    def take_exchanges(self) -> tuple[Exchange, ...]:
        """Returns what was asked since the last time."""
        taken = tuple(self._kept)
        self._kept.clear()
        return taken


def _secrets(target: Target) -> Secrets:
    named = {target.engine_key: HIDDEN_ENGINE, target.key: HIDDEN}
    return {secret: shown for secret, shown in named.items() if secret}


def read_stream(reply: Reply) -> Stream:
    """Returns a reply as the stream of a chat; raises Declined and Trouble."""
    check_reply(reply)
    events = read_events(reply)
    chunks = read_chunks(events)
    return Stream(events, chunks, join_chunks(chunks, reply))
