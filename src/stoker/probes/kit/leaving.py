"""Leaves an answer half way, and finds out by the engine's own counters whether it goes on working for nobody.

No count is proof by itself. A gauge may still show the request before: an engine notices its end a moment later, and by its
source SGLang 0.5.16 renews its gauge at a prefill, each 40 steps, and after half a minute without work. Some counters move
only when a request ends; those of an engine that stands still move no more. So a question of one token stands before both
looks that are compared: its prefill renews gauges, and its answer shows that the engine still works for those who stayed.
An engine that makes all tokens before it would have noticed is left once more, with as many as it needs time for.
"""

from __future__ import annotations

import asyncio
import math
import time
from typing import NamedTuple

from stoker.counters import Counters
from stoker.probes.kit.asker import Asker
from stoker.probes.kit.context import read_context_tokens
from stoker.probes.kit.findings import Finding, Trouble, failed, passed, unknown

QUESTION = "Count from 1 to 1000."
LONG_TOKENS = 400
FURTHER_TOKENS = 16  # than it had made: so many more come where nothing but the client's leaving ended it
LOOKS, LAST_LOOKS, LOOK_EVERY_S = 50, 20, 0.1
STILL_LOOKS = 10  # in a row without a further token: it has stopped, or stands still, and to wait tells no more
QUICK_S = 2.5  # SGLang 0.5.16 lets a request go two seconds after its client has left
BUSY_S = 2 * QUICK_S  # for how long a quick engine is asked to work, at the pace that it showed
PROMPT_ROOM_TOKENS = 256  # of the context: the question, and what a chat template puts before it
GENERATED = "generated_tokens_total"
AGAIN = "ask again while it is idle"


class Rest(NamedTuple):
    """What was counted after a question that was answered; `is_sure`: with nothing under way, and twice the same."""

    counters: Counters
    answered_tokens: int
    is_sure: bool


class Quick(NamedTuple):
    """An answer that was whole so soon after its client had left that its engine need not have noticed yet."""

    made: int
    took_s: float


async def leave(ask: Asker) -> Finding:
    """Returns whether a client that leaves frees its slot."""
    found = await _leave(ask, LONG_TOKENS)
    return await _leave_again(ask, found) if isinstance(found, Quick) else found


async def _leave_again(ask: Asker, quick: Quick) -> Finding:
    """Leaves a quick engine once more, with more to do; says why where that cannot be."""
    tokens = await _enough_for(ask, quick)
    if tokens is None:
        return _untold(
            quick, ", and its context has no room for longer work", "give it a longer context for as long as you ask this"
        )
    try:
        found = await _leave(ask, tokens)
    except Trouble as trouble:
        return _untold(
            quick,
            f", and asked for {tokens} it gave none: {trouble.says}",
            "raise its limit of tokens for as long as you ask this",
        )
    return _untold(found) if isinstance(found, Quick) else found


def _untold(quick: Quick, why: str = "", mend: str = "") -> Finding:
    all_of_them = f"it had made all {quick.made} tokens {quick.took_s:.1f} s after the client had left"
    return unknown(f"{all_of_them}, too quick to tell{why}", mend)


async def _enough_for(ask: Asker, quick: Quick) -> int | None:
    """Returns how many tokens keep a quick engine busy until it must have noticed; None where its context is too short."""
    per_s = quick.made / quick.took_s
    room = (await read_context_tokens(ask) or 0) - PROMPT_ROOM_TOKENS
    return min(room, math.ceil(per_s * BUSY_S)) if room > per_s * QUICK_S else None


async def _leave(ask: Asker, tokens: int) -> Finding | Quick:
    """Leaves an answer of so many tokens; raises Trouble where it can't be left."""
    first = await ask.read_counters()
    if first is None or first.running is None:
        return unknown(
            "the engine's /metrics was not to be read, so nobody knows whether it goes on", "name it with --engine"
        )
    before = await _come_to_rest(ask, first, LOOKS)
    if not before.counters.since(first).get(GENERATED, 1):
        return unknown("not asked, since its counters do not count what it answers", "see what `identity` finds")
    if not before.is_sure:
        return unknown("it is busy with what others ask, so nobody can tell for whom it works", AGAIN)
    await _begin_and_leave(ask, tokens)
    left_s = time.monotonic()
    ended = await _await_end(ask, before.counters)
    took_s = time.monotonic() - left_s
    try:
        after = await _come_to_rest(ask, ended, LAST_LOOKS)
    except Trouble as trouble:
        return await _judge_silent(ask, ended, trouble)
    made = _made(before.counters, after.counters) - after.answered_tokens
    return _judge_rest(after, made, tokens, took_s) or await _judge_end(ask, made, tokens)


async def _come_to_rest(ask: Asker, since: Counters, looks: int) -> Rest:
    """Asks for one token, and returns the counters once that is counted and nothing moves; raises Trouble."""
    answered = (await ask.chat("Say hello.", max_tokens=1)).tokens or 1
    now = since
    for _ in range(looks):
        seen = await ask.read_counters() or now
        is_same, now = seen == now, seen
        if is_same and not now.running and now.since(since).get(GENERATED, 1):
            return Rest(now, answered, is_sure=True)
        await asyncio.sleep(LOOK_EVERY_S)
    return Rest(now, answered, is_sure=False)


async def _begin_and_leave(ask: Asker, tokens: int) -> None:
    """Raises Trouble where the stream could not be left."""
    body = ask.body(QUESTION, tokens, {"stream": True, "ignore_eos": True})
    reply = await ask.send("/chat/completions", body, until=lambda so_far: so_far.count(b"data:") > 3)
    if not reply.left:
        raise Trouble(f"the stream that should be left ended by itself: {reply.problem or f'HTTP {reply.status}'}")


async def _await_end(ask: Asker, before: Counters) -> Counters:
    """Returns the counters once it is counted and nothing runs or no token comes any more, or after the last look.

    SGLang's and llama.cpp's counters move at a request's end: that is waited for.
    """
    now, still = before, 0
    for _ in range(LOOKS):
        seen = await ask.read_counters() or now
        still, now = (still + 1 if _made(now, seen) == 0 else 0), seen
        if _made(before, now) and (not now.running or still >= STILL_LOOKS):
            break
        await asyncio.sleep(LOOK_EVERY_S)
    return now


def _made(before: Counters, now: Counters) -> int:
    return now.since(before).get(GENERATED, 0)


async def _judge_silent(ask: Asker, ended: Counters, trouble: Trouble) -> Finding:
    """Judges an engine that answers nobody else: by whether it goes on counting."""
    now = await ask.read_counters() or ended
    if now.running and _made(ended, now):
        return failed("the engine still works for a client that had left, and meanwhile answers nobody else")
    return unknown(f"it answers nothing since a client left, so it may stand still: {trouble.says}", AGAIN)


def _judge_rest(after: Rest, made: int, tokens: int, took_s: float) -> Finding | Quick | None:
    """Judges what was counted at rest; None where the answer was not made to its end."""
    if after.counters.running:
        return failed(f"{took_s:.0f} s after the client had left the engine still works for it")
    if made >= tokens and took_s < QUICK_S:
        return Quick(made, took_s)
    if made >= tokens:
        return failed(f"it generated all {made} tokens for a client that had left")
    if not after.is_sure:
        return unknown("others ask it meanwhile, so nobody can tell for whom it works", AGAIN)
    if made <= 0:
        return unknown("it counts nothing of an answer whose client left, so nobody can tell when that ended")
    return None


async def _judge_end(ask: Asker, made: int, tokens: int) -> Finding:
    """Judges an answer that ended early: whether it goes on where nobody leaves, or has a limit of the server's."""
    whole = await ask.chat(QUESTION, max_tokens=min(made + FURTHER_TOKENS, tokens), ignore_eos=True)
    if whole.tokens is None or whole.tokens > made:
        return passed(f"it stopped after {made} of {tokens} tokens, once the client had left")
    return unknown(f"the answer ends after {whole.tokens} of {tokens} tokens by itself, so nobody can tell what ended it")
