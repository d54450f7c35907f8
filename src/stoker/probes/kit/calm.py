"""Finds what keeps a model from thinking first, so that probes with few tokens see its answers; and what makes it think."""

from __future__ import annotations

from typing import Any

from stoker.probes.kit.asker import Asker
from stoker.probes.kit.findings import Declined, Trouble

TOKENS, THINKING_TOKENS = 16, 48
OPENING, CLOSING = "<think>", "</think>"
Way = dict[str, Any]
CALM: tuple[Way, ...] = (
    {},
    {"chat_template_kwargs": {"enable_thinking": False}},
    {"reasoning_effort": "none"},
    {"chat_template_kwargs": {"thinking": False}},
)
LIVELY: tuple[Way, ...] = (
    {},
    {"reasoning_effort": "high"},
    {"chat_template_kwargs": {"enable_thinking": True}},
    {"chat_template_kwargs": {"thinking": True}},
)


LOOKING_TOKENS = len(LIVELY) * THINKING_TOKENS


async def calm_down(ask: Asker) -> None:
    """Tries the known ways one after the other; where none of them helps, the model goes on thinking."""
    for way in CALM:
        try:
            thinks = await _thinks(ask, "Say hello.", way)
        except Declined:
            continue
        except Trouble:
            return
        if not thinks:
            ask.calm = way
            return


async def find_thinking(ask: Asker) -> Way | None:
    """Returns what makes the model think; None where nothing does. Asks only once."""
    if ask.lively is None:
        ask.lively = ()
        for way in LIVELY:
            try:
                if await _thinks(ask, "What is 17 + 25?", way, THINKING_TOKENS):
                    ask.lively = (way,)
                    break
            except Declined:
                continue
    return next(iter(ask.lively), None)


async def _thinks(ask: Asker, question: str, way: Way, tokens: int = TOKENS) -> bool:
    answer = await ask.chat(question, max_tokens=tokens, calm=way)
    # Some templates open the thought in the prompt, so that only its end is in the text.
    return bool(answer.thought) or OPENING in answer.text or CLOSING in answer.text
