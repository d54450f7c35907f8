"""Finds what keeps a model from thinking first, so that probes with few tokens see its answers."""

from __future__ import annotations

from typing import Any

from stoker.probes.kit.asker import Asker
from stoker.probes.kit.findings import Declined, Trouble

TOKENS = 24
OPENING = "<think>"
WAYS: tuple[dict[str, Any], ...] = (
    {},
    {"chat_template_kwargs": {"enable_thinking": False}},
    {"reasoning_effort": "none"},
    {"chat_template_kwargs": {"thinking": False}},
)


async def calm_down(ask: Asker) -> None:
    """Tries the known ways one after the other; `thinks_on` where none of them helps."""
    for way in WAYS:
        try:
            answer = await ask.chat("Say hello.", max_tokens=TOKENS, **way)
        except Declined:
            continue
        except Trouble:
            return
        if answer.text and not answer.thought and not answer.text.lstrip().startswith(OPENING):
            ask.calm = way
            return
    ask.thinks_on = True
