"""Asks a model through the gateway, as any client would."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from stoker.errors import Refused, StokerError, WrongUse, model_hint
from stoker.flows.client import Daemon
from stoker.records import State


class Piece(NamedTuple):
    """A piece of the answer, and how long after the question it came."""

    text: str
    is_thought: bool
    after_s: float


def choose_model(daemon: Daemon, wanted: str | None) -> str:
    """Returns the model to ask: the one named, or the only one that is READY."""
    services = daemon.status().services
    if wanted is not None:
        _check_no_service(daemon, wanted, {one.name: one.model for one in services})
        return wanted
    ready = [service.model for service in services if service.state is State.READY]
    if len(ready) == 1:
        return ready[0]
    states = ", ".join(f"{service.model} ({service.state})" for service in services) or "none"
    raise Refused(
        "name the model to ask with --model" if ready else "no model is READY",
        why=f"models here: {states}",
        next_step="" if ready else "`stoker up` starts one",
    )


def _check_no_service(daemon: Daemon, wanted: str, models: Mapping[str, str | None]) -> None:
    """Raises WrongUse for a service's name that is no model's; of every other name the gateway judges."""
    if wanted in models and wanted not in {one.name for one in daemon.models()}:
        raise WrongUse(
            f"there is no model called `{wanted}`", next_step=model_hint(wanted, models, "", "stoker ask --model")
        )


def ask(
    daemon: Daemon, model: str, question: str, *, think: bool, max_tokens: int, temperature: float | None
) -> Iterator[Piece]:
    """Yields the answer as it comes; raises StokerError where the gateway refuses or the stream breaks."""
    body: dict[str, Any] = {
        "model": model, "stream": True, "max_tokens": max_tokens, "messages": [{"role": "user", "content": question}],
    }  # fmt: skip
    if temperature is not None:
        body["temperature"] = temperature
    if think:
        body["chat_template_kwargs"] = {"enable_thinking": True}
    begun = time.monotonic()
    for line in daemon.stream("POST", "/v1/chat/completions", body):
        yield from _pieces(line, begun)


def _pieces(line: bytes, begun: float) -> Iterator[Piece]:
    if not line.startswith(b"data: {"):
        return
    event: dict[str, Any] = msgspec.json.decode(line[len(b"data: ") :])
    if "error" in event:
        raise StokerError(event["error"]["message"])
    delta = (event.get("choices") or [{}])[0].get("delta", {})
    thought = delta.get("reasoning_content") or delta.get("reasoning")  # two names of one thing, and some engines send both
    for text, is_thought in ((thought, True), (delta.get("content"), False)):
        if text:
            yield Piece(text, is_thought, time.monotonic() - begun)
