"""Tempts a router to fall back: sends what an engine may refuse, and looks who answered.

Witnesses, the surest first: what the router's headers say; the engine's counters, which did not move by what was answered;
the engine itself, which refuses the same request; an answer of another form than those to plain questions.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from stoker.counters import Counters
from stoker.probes.kit.answer import Answer, read_answer
from stoker.probes.kit.asker import Asker, read_stream
from stoker.probes.kit.findings import Declined, Finding, Trouble, degraded, failed, passed, unknown
from stoker.probes.kit.reply import check_reply
from stoker.probes.kit.routers import fell_back, who_answered
from stoker.probes.kit.wire import Reply

LOOKS, LOOK_EVERY_S = 5, 0.1
PLAIN_TOKENS = 2


class Tempted(NamedTuple):
    """One tempting request and its reply: the answer, or why none came; `is_foreign`: another than the engine gave it."""

    body: dict[str, Any]
    reply: Reply
    answer: Answer | None
    declined: str = ""
    is_foreign: bool = False


async def tempt(ask: Asker, bodies: list[dict[str, Any]], mend: str = "") -> Finding:
    """Sends the bodies; fails where any of them was answered by another than the engine that should."""
    plain = await _send(ask, ask.body("Say hello.", PLAIN_TOKENS, {}), can_count=True)
    if plain.answer is None:
        return unknown(f"a plain question gets no answer: {plain.declined}")
    # Where not even that is counted, the counters are another engine's: what `identity` finds, and no witness here.
    tempted = [await _send(ask, body, can_count=not plain.is_foreign) for body in bodies]
    answered = [one for one in tempted if one.answer is not None]
    if not answered:
        return passed(f"the caller sees the error: {tempted[0].declined}")
    because = await _ask_engine(ask, answered[0].body)
    foreign = [one for one in answered if one.is_foreign] or (answered if because else [])
    if foreign:
        return failed(_say(foreign, len(tempted), because), mend)
    whole = [one for one in answered if not one.body.get("stream")]  # events have a form of their own
    strange = [one for one in whole if one.answer and _form(one.answer) != _form(plain.answer)]
    if strange:
        return degraded(
            f"{len(strange)} of {len(tempted)} requests got an answer of another form than a plain question gets",
            "another engine may have answered; name the one that should with --engine, and its counters will tell",
        )
    return passed("the engine itself answers them")


async def _send(ask: Asker, body: dict[str, Any], *, can_count: bool) -> Tempted:
    before = await ask.read_counters() if can_count else None
    reply = await ask.send("/chat/completions", body)
    try:
        answer = read_stream(reply).answer if body.get("stream") else read_answer(reply)
    except Trouble as trouble:
        return Tempted(body, reply, None, declined=trouble.says)
    is_foreign = fell_back(reply) or await _is_missing(ask, before, answer)
    return Tempted(body, reply, answer, is_foreign=is_foreign)


async def _is_missing(ask: Asker, before: Counters | None, answer: Answer) -> bool:
    """Tells whether the engine's counters did not move by what was answered, after some looks."""
    expected = {"requests_total": 1, "generated_tokens_total": answer.tokens or 1}
    for _ in range(LOOKS if before else 0):
        now = await ask.read_counters()
        moved = now.since(before) if now and before else {}
        if not any(count < expected.get(name, 0) for name, count in moved.items()):
            return False
        await asyncio.sleep(LOOK_EVERY_S)
    return before is not None


async def _ask_engine(ask: Asker, body: dict[str, Any]) -> str:
    """Returns what the engine itself says against a request; empty where it answers, or would not answer anything."""
    engine = ask.engine()
    if engine is None or await _refusal(engine, engine.body("Say hello.", PLAIN_TOKENS, {})):
        return ""
    return await _refusal(engine, {**body, "model": engine.target.model})


async def _refusal(engine: Asker, body: dict[str, Any]) -> str:
    reply = await engine.send("/chat/completions", body)
    try:
        check_reply(reply)
    except Declined as no:
        return no.says
    except Trouble:
        return ""
    return ""


def _say(foreign: list[Tempted], sent: int, because: str) -> str:
    where = who_answered([one.reply for one in foreign])
    these = f"these {len(foreign)} requests" if len(foreign) > 1 else "this request"
    were = "were" if len(foreign) > 1 else "was"
    told = f" ({where})" if where else ""
    cause = f", because the first returned {because}" if because else ""
    said = sorted({one.answer.completion.model or "nobody" for one in foreign if one.answer})
    return f"{these} of {sent} {were} answered by the other model{told}, under the name {', '.join(said)}{cause}"


def _form(answer: Answer) -> tuple[object, ...]:
    told = answer.completion
    prefix, dash, _ = (told.id or "").partition("-")  # SGLang's ids are 32 letters without one
    return (told.system_fingerprint, prefix if dash else "", len(told.id or ""))
