"""Asks an engine whether it lives, and whether the model it should serve really answers."""

from __future__ import annotations

import time
from typing import Any

import httpx
import msgspec

from stoker.errors import StokerError
from stoker.records import Endpoint, Proof

HEALTH_LIMIT_S = 5.0
PROOF_TOKENS = 8
PROMPT = "Say hello."


class Prober:
    """Probes engines over one client, with the key that they were given."""

    def __init__(self, key: str) -> None:
        self._client = httpx.AsyncClient(headers={"authorization": f"Bearer {key}"}, trust_env=False)

    async def is_healthy(self, endpoint: Endpoint, path: str) -> bool:
        """Tells whether the engine says that it is ready; what it says proves nothing yet."""
        try:
            reply = await self._client.get(f"{_url(endpoint)}{path}", timeout=HEALTH_LIMIT_S)
        except httpx.HTTPError:
            return False
        return reply.status_code == 200

    async def prove(self, endpoint: Endpoint) -> Proof:
        """Gets real tokens from the model by name; raises StokerError with what came instead."""
        body = {
            "model": endpoint.model, "max_tokens": PROOF_TOKENS, "temperature": 0, "stream": True,
            "stream_options": {"include_usage": True}, "messages": [{"role": "user", "content": PROMPT}],
        }  # fmt: skip
        begun = time.monotonic()
        first_s, pieces, models, tokens = None, [], set(), None
        try:
            async with self._client.stream(
                "POST", f"{_url(endpoint)}/v1/chat/completions", json=body, timeout=None
            ) as reply:
                if reply.status_code != 200:
                    said = (await reply.aread()).decode(errors="replace")[:300]
                    raise _unproven(endpoint, f"it answered HTTP {reply.status_code}: {said}")
                async for line in reply.aiter_lines():
                    event = _event(line)
                    models |= {event["model"]} if event.get("model") else set()
                    if text := _text(event):
                        first_s = first_s if first_s is not None else time.monotonic() - begun
                        pieces.append(text)
                    tokens = (event.get("usage") or {}).get("completion_tokens", tokens)
        except httpx.HTTPError as problem:
            raise _unproven(endpoint, f"it broke off ({type(problem).__name__}: {problem})") from problem
        if first_s is None:
            raise _unproven(endpoint, "it answered without a single token")
        if models != {endpoint.model}:
            raise _unproven(endpoint, f"it says that {', '.join(sorted(models)) or 'nobody'} answered")
        return Proof(endpoint.model, "".join(pieces), tokens or len(pieces), first_s)

    async def close(self) -> None:
        """Closes the client's connections."""
        await self._client.aclose()


def _url(endpoint: Endpoint) -> str:
    return f"http://{endpoint.host}:{endpoint.port}"


def _event(line: str) -> dict[str, Any]:
    if not line.startswith("data: {"):
        return {}
    try:
        event: dict[str, Any] = msgspec.json.decode(line.removeprefix("data: "))
    except msgspec.DecodeError:
        return {}
    return event


def _text(event: dict[str, Any]) -> str:
    delta = (event.get("choices") or [{}])[0].get("delta", {})
    return str(delta.get("content") or delta.get("reasoning_content") or "")


def _unproven(endpoint: Endpoint, why: str) -> StokerError:
    return StokerError(f"{endpoint.model} did not prove itself: {why}")
