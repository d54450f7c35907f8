"""Which conversations the model is taught, and how often."""

from __future__ import annotations

import random
from collections.abc import Callable

from dialogue.arithmetic import arithmetic
from dialogue.coding import coding
from dialogue.draw import Draw, sentences
from dialogue.records import Conversation, Exchange, Json
from dialogue.stories import prose
from dialogue.talk import about_itself, explanation, from_bank, memory, small_exchange, turns_of
from dialogue.tool_talk import beside_tools, with_call, without_fit, without_tools

SYSTEM = sentences("mixture", "system")
SYSTEM_SHARE = 0.45
THINKING_SHARE = 0.2
EXCHANGES: tuple[tuple[float, Callable[[Draw], Exchange]], ...] = (
    (0.30, arithmetic),
    (0.20, coding),
    (0.12, prose),
    (0.10, about_itself),
    (0.06, explanation),
    (0.04, lambda draw: from_bank(draw, "small_talk")),
    (0.18, small_exchange),
)


def any_exchange(draw: Draw) -> Exchange:
    """A question that needs no tool."""
    point = draw.rng.random()
    for share, make in EXCHANGES:
        point -= share
        if point < 0:
            return make(draw)
    return small_exchange(draw)


def chat(draw: Draw, thinking: bool) -> Conversation:
    """A conversation without tools: one question, a few, or one that needs memory."""
    if draw.chance(0.08):
        return Conversation(tuple(memory(draw)), (), False, "memory")
    if draw.chance(0.04):
        return without_tools(draw, thinking)
    count = draw.one((1, 1, 1, 2, 2, 3, 4, 6))
    turns = [turn for _ in range(count) for turn in turns_of(any_exchange(draw), thinking)]
    return Conversation(tuple(turns), (), thinking, "chat")


def chat_beside_tools(draw: Draw) -> Exchange:
    """A question that no usual tool should take."""
    return draw.one((about_itself, about_itself, lambda d: from_bank(d, "small_talk"), coding, explanation, prose))(draw)


def system_turn(draw: Draw) -> list[Json]:
    """A system message, or none."""
    if not draw.chance(SYSTEM_SHARE):
        return []
    values = {"weekday": draw.word("weekday"), "city": draw.name("city"), "person": draw.name("person")}
    return [{"role": "system", "content": draw.phrase(draw.one(SYSTEM), values)}]


def tool_conversation(draw: Draw, thinking: bool) -> Conversation:
    """A conversation in which tools are offered."""
    before = system_turn(draw)
    if draw.chance(0.12):
        before += turns_of(chat_beside_tools(draw), thinking)
    kind = draw.rng.random()
    if kind < 0.80:
        return with_call(draw, before, thinking)
    if kind < 0.89:
        return without_fit(draw, before, thinking)
    return beside_tools(draw, before, chat_beside_tools(draw), thinking)


def conversation(draw: Draw, tool_share: float) -> Conversation:
    """One training conversation."""
    thinking = draw.chance(THINKING_SHARE)
    if draw.chance(tool_share):
        return tool_conversation(draw, thinking)
    made = chat(draw, thinking)
    return Conversation((*system_turn(draw), *made.messages), (), made.thinking, made.kind)


def training_draw(seed: int) -> Draw:
    """The source of choices for training data."""
    return Draw(random.Random(seed), held_out=False)


def long_conversation(draw: Draw) -> Conversation:
    """A conversation of many turns, so that late positions are practised too."""
    thinking = draw.chance(THINKING_SHARE)
    before = system_turn(draw)
    for _ in range(draw.integer(8, 40)):
        before += turns_of(any_exchange(draw), thinking)
    if draw.chance(0.5):
        return with_call(draw, before, thinking)
    return Conversation((*before, *memory(draw)), (), False, "long")
