"""Asks an engine whether it lives, and whether the model it should serve really answers."""

from __future__ import annotations

import asyncio
import re
import time

import httpx
import msgspec

from stoker.errors import StokerError
from stoker.records import Endpoint, Proof, say_bytes

HEALTH_LIMIT_S = 5.0
PAGE_LIMIT_BYTES = 4 * 1024**2  # the largest page seen, SGLang's of a busy day, has a tenth of that
PROOF_TOKENS = 8
PROMPT = "Say hello."
# Tokens and steps, of whichever engine; not seconds, which run on while nothing moves.
WORK = re.compile(r"\w+:\w*(?:tokens|decode|iteration|predicted|draft)\w*(?<!seconds)_(?:total|sum|count)\b")


class TooLarge(StokerError):
    """An engine said more than anybody would read."""


class Prober:
    """Probes engines over one client, with the key that they were given."""

    def __init__(self, key: str) -> None:
        # Each question has a connection of its own: llama.cpp (build 11549) closes one after a streamed reply without having
        # said so, and what goes out on it before that is seen is lost (tests/probes/test_with_llama_cpp.py).
        limits = httpx.Limits(max_keepalive_connections=0)
        self._client = httpx.AsyncClient(headers={"authorization": f"Bearer {key}"}, trust_env=False, limits=limits)

    async def is_healthy(self, endpoint: Endpoint, path: str) -> bool:
        """Tells whether the engine says that it is ready; what it says proves nothing yet."""
        try:
            reply = await self._client.get(f"{_url(endpoint)}{path}", headers=_headers(endpoint), timeout=HEALTH_LIMIT_S)
        except httpx.HTTPError:
            return False
        return reply.status_code == 200

    async def prove(self, endpoint: Endpoint) -> Proof:
        """Gets real tokens from the model by name; raises StokerError with what came instead."""
        return await self.ask(endpoint, PROMPT, PROOF_TOKENS)

    async def ask(self, endpoint: Endpoint, prompt: str, tokens: int) -> Proof:
        """Gets at most so many tokens, the likeliest ones; raises StokerError with what came instead."""
        body = {
            "model": endpoint.model, "max_tokens": tokens, "temperature": 0, "stream": True,
            "stream_options": {"include_usage": True}, "messages": [{"role": "user", "content": prompt}],
        }  # fmt: skip
        heard = _Heard(time.monotonic())
        try:
            async with self._client.stream(
                "POST", f"{_url(endpoint)}/v1/chat/completions", json=body, headers=_headers(endpoint), timeout=None
            ) as reply:
                if reply.status_code != httpx.codes.OK:
                    said = (await reply.aread()).decode(errors="replace")[:300]
                    raise _unproven(endpoint, f"it answered HTTP {reply.status_code}: {said}")
                async for line in reply.aiter_lines():
                    heard.take(line)
        except httpx.HTTPError as problem:
            raise _unproven(endpoint, f"it broke off ({type(problem).__name__}: {problem})") from problem
        except msgspec.MsgspecError as problem:
            raise _unproven(endpoint, f"it sent an event that is not OpenAI's: {problem}") from problem
        return heard.judge(endpoint)

    async def read_counters(self, endpoint: Endpoint) -> tuple[str, ...] | None:
        """Returns the lines of the engine's metrics that count work; None where it does not answer."""
        try:
            page = await self.read_page(endpoint, HEALTH_LIMIT_S)
        except StokerError:
            return None
        return tuple(line for line in page.decode(errors="replace").splitlines() if WORK.match(line))

    async def read_page(self, endpoint: Endpoint, limit_s: float) -> bytes:
        """Returns the engine's metrics; raises StokerError where none come in time, and TooLarge where too much comes."""
        what, page = f"{endpoint.service} gives no metrics", bytearray()
        headers = {**_headers(endpoint), "accept-encoding": "identity"}  # a small reply could unfold into a large one
        try:
            async with (
                asyncio.timeout(limit_s),
                self._client.stream("GET", f"{_url(endpoint)}/metrics", headers=headers, timeout=limit_s) as reply,
            ):
                if reply.status_code != httpx.codes.OK:
                    raise StokerError(what, why=f"its engine answers HTTP {reply.status_code} at /metrics")
                async for piece in reply.aiter_raw():
                    page += piece
                    if len(page) > PAGE_LIMIT_BYTES:
                        raise TooLarge(what, why=f"its engine's page has more than {say_bytes(PAGE_LIMIT_BYTES)}")
        except (httpx.HTTPError, TimeoutError) as problem:
            raise StokerError(what, why=f"its engine broke off ({type(problem).__name__}: {problem})") from problem
        return bytes(page)

    async def close(self) -> None:
        """Closes the client's connections."""
        await self._client.aclose()


def _url(endpoint: Endpoint) -> str:
    return f"http://{endpoint.host}:{endpoint.port}"


def _headers(endpoint: Endpoint) -> dict[str, str]:
    """An engine that somebody else started has a key of its own; the client's default is ours."""
    return {"authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None  # the same: vLLM's name for it, and the only one since 0.27

    def text(self) -> str:
        return self.content or self.reasoning_content or self.reasoning or ""


class _Choice(msgspec.Struct):
    delta: _Delta = msgspec.field(default_factory=_Delta)


class _Usage(msgspec.Struct):
    completion_tokens: int | None = None


class _Event(msgspec.Struct):
    model: str | None = None
    choices: list[_Choice] = []
    usage: _Usage | None = None


class _Heard:
    """What an engine said until now."""

    def __init__(self, begun_s: float) -> None:
        self._begun_s = begun_s
        self._first_s: float | None = None
        self._pieces: list[str] = []
        self._models: set[str] = set()
        self._tokens: int | None = None

    def take(self, line: str) -> None:
        """Takes one line of the stream; raises MsgspecError where it is not what OpenAI's clients understand."""
        if not line.startswith("data: {"):
            return
        event = msgspec.json.decode(line.removeprefix("data: "), type=_Event)
        if event.model is not None:
            self._models.add(event.model)
        if event.usage is not None and event.usage.completion_tokens is not None:
            self._tokens = event.usage.completion_tokens
        for choice in event.choices:
            if text := choice.delta.text():
                self._first_s = time.monotonic() - self._begun_s if self._first_s is None else self._first_s
                self._pieces.append(text)

    def judge(self, endpoint: Endpoint) -> Proof:
        """Returns the proof; raises StokerError where nothing, or another model, answered."""
        if self._first_s is None:
            raise _unproven(endpoint, "it answered without a single token")
        if self._models != {endpoint.model}:
            raise _unproven(endpoint, f"it says that {', '.join(sorted(self._models)) or 'nobody'} answered")
        took_s = time.monotonic() - self._begun_s
        return Proof(endpoint.model, "".join(self._pieces), self._tokens or len(self._pieces), self._first_s, took_s)


def _unproven(endpoint: Endpoint, why: str) -> StokerError:
    return StokerError(f"{endpoint.model} did not prove itself: {why}")
