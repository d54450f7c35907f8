"""Finds what keeps a model from thinking first, so that probes with few tokens see its answers; and what makes it think."""

from __future__ import annotations

from typing import Any

from stoker.probes.kit.asker import Asker
from stoker.probes.kit.findings import Declined, Trouble

TOKENS = 16
OPENING = "<think>"
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
                if await _thinks(ask, "What is 17 + 25?", way):
                    ask.lively = (way,)
                    break
            except Declined:
                continue
    return next(iter(ask.lively), None)


async def _thinks(ask: Asker, question: str, way: Way) -> bool:
    answer = await ask.chat(question, max_tokens=TOKENS, calm=way)
    return bool(answer.thought) or answer.text.lstrip().startswith(OPENING)
