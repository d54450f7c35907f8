"""Conversations about tools: the right call, the answer from its result, or a plain answer when no tool fits."""

from __future__ import annotations

import json
from dataclasses import dataclass

from dialogue.draw import Draw, sentences
from dialogue.families import CATCH_ALL, Family, Offer, ask, families, offer, rivals
from dialogue.fields import sample
from dialogue.invented import invent
from dialogue.records import Call, Conversation, Exchange, Json, assistant, calling, user

INVENTED_FAMILY_SHARE = 0.35
TRIES = 20
NO_TOOL = sentences("tool_talk", "no_tool")
NO_TOOLS_AT_ALL = sentences("tool_talk", "no_tools_at_all")
FITS = sentences("tool_talk", "fits")
NONE_FITS = sentences("tool_talk", "none_fits")
THANKS = (
    Exchange("Thanks!", "You're welcome."),
    Exchange("Thank you.", "You're welcome."),
    Exchange("Great, thanks.", "Happy to help."),
    Exchange("Perfect.", "Glad that helped."),
    Exchange("ok", "Is there anything else?"),
    Exchange("Cool", "Anything else I can do?"),
)


@dataclass(frozen=True)
class Scene:
    """The tools of one conversation, one of which is wanted."""

    wanted: Offer
    others: tuple[Offer, ...]

    def tools(self, draw: Draw, with_wanted: bool = True) -> tuple[Json, ...]:
        """All offered tools in a random order."""
        shown = [o.tool for o in self.others] + ([self.wanted.tool] if with_wanted else [])
        draw.rng.shuffle(shown)
        return tuple(shown)


def any_family(draw: Draw) -> Family:
    """A family from the file or an invented one."""
    return invent(draw) if draw.chance(INVENTED_FAMILY_SHARE) else draw.one(families())


def others_than(draw: Draw, wanted: Family, count: int, apart: bool) -> tuple[Offer, ...]:
    """Other tools, with different names; `apart` keeps away everything that might serve the same request."""
    keys = rivals(wanted.key) if apart else {wanted.key}
    names: set[str] = set()
    offers: list[Offer] = []
    for _ in range(count * 3):
        family = any_family(draw)
        made = offer(draw, family)
        if family.key not in keys and made.name not in names and len(offers) < count:
            names.add(made.name)
            keys = keys | {family.key}
            offers.append(made)
    return tuple(offers)


def rare_value(draw: Draw, call: Call) -> bool:
    """Whether a held-out call is hard enough to count: something in it was never seen in training."""
    return not draw.held_out or bool(call.arguments) or draw.chance(0.3)


def scene(draw: Draw, apart: bool = False) -> tuple[Scene, str, Call]:
    """Tools, a request and the call that it needs."""
    for _ in range(TRIES):
        wanted = offer(draw, any_family(draw))
        asked = ask(draw, wanted)
        if asked and rare_value(draw, asked[1]):
            count = draw.one((0, 0, 1, 1, 2, 2, 3, 4, 5)) if not apart else draw.integer(1, 4)
            others = tuple(o for o in others_than(draw, wanted.family, count, apart) if o.name != wanted.name)
            return Scene(wanted, others), *asked
    raise LookupError("no request fits any offer")


def thoughts_for(draw: Draw, call: Call) -> str:
    """Why this tool, and with which arguments."""
    said = draw.one(FITS).format(name=call.name)
    given = ", ".join(f"{key} is {json.dumps(value, ensure_ascii=False)}" for key, value in call.arguments.items())
    return f"{said} {given[0].upper() + given[1:]}." if given else f"{said} It takes no arguments."


def result_of(draw: Draw, offered: Offer, call: Call) -> tuple[str, Json]:
    """What the tool sends back, and the values in it."""
    values = {name: sample(draw, kind).written for name, kind in offered.family.result.items()}
    if not values:
        return draw.one(("ok", "done", '{"status": "ok"}', '{"success": true}', '{"result": "done"}', "success")), {}
    shape = draw.rng.random()
    if shape < 0.15:
        return "\n".join(f"{name}: {value}" for name, value in values.items()), values
    shown = dict(call.arguments) | values if shape < 0.35 else values
    if shape > 0.85:
        shown = {"result": shown}
    return json.dumps(shown, ensure_ascii=False), values


def answer_from(draw: Draw, offered: Offer, call: Call, values: Json) -> str:
    """The tool's result in words."""
    if offered.family.key.startswith("invented ") and values:
        return draw.phrase("[The answer is|The result is|It says] {value}.", {"value": next(iter(values.values()))})
    usable = [
        a
        for a in offered.family.answers
        if all(f"{{{f.key}}}" not in a or f.key in call.values for f in offered.family.fields)
    ]
    text = draw.phrase(draw.one(usable), call.values | values)
    return text[0].upper() + text[1:]


def call_turns(draw: Draw, offered: Offer, request: str, call: Call, thinking: bool, finish: bool) -> list[Json]:
    """A request and its call, and if wanted the result and the answer."""
    turns = [user(request), calling(call, thoughts_for(draw, call) if thinking else "")]
    if finish:
        content, values = result_of(draw, offered, call)
        thoughts = "The tool has answered. I put it in words." if thinking else ""
        turns += [{"role": "tool", "content": content}, assistant(answer_from(draw, offered, call, values), thoughts)]
    return turns


def another_call(draw: Draw, offers: tuple[Offer, ...], thinking: bool) -> list[Json]:
    """A second request in the same conversation, if one of its tools can serve one."""
    for offered in draw.rng.sample(offers, len(offers)):
        asked = ask(draw, offered)
        if asked:
            return call_turns(draw, offered, *asked, thinking=thinking, finish=draw.chance(0.3))
    return []


def with_call(draw: Draw, before: list[Json], thinking: bool) -> Conversation:
    """A conversation that needs a tool."""
    stage, request, call = scene(draw)
    finish = draw.chance(0.4) and not draw.held_out
    turns = before + call_turns(draw, stage.wanted, request, call, thinking, finish)
    if finish and draw.chance(0.25):
        after = draw.one(THANKS)
        turns += [user(after.question), assistant(after.answer, "The user is content." if thinking else "")]
    if finish and draw.chance(0.35):
        turns += another_call(draw, (stage.wanted, *stage.others), thinking)
    return Conversation(tuple(turns), stage.tools(draw), thinking, "call")


def without_fit(draw: Draw, before: list[Json], thinking: bool) -> Conversation:
    """A request whose tool is not among those offered."""
    stage, request, _ = scene(draw, apart=True)
    answer = assistant(draw.phrase(draw.one(NO_TOOL)), draw.one(NONE_FITS[:1]) if thinking else "")
    return Conversation((*before, user(request), answer), stage.tools(draw, with_wanted=False), thinking, "no fit")


def without_tools(draw: Draw, thinking: bool) -> Conversation:
    """A request for a tool in a conversation that offers none."""
    asked = ask(draw, offer(draw, draw.one([f for f in families() if f.key not in ("calculator", "define", "translate")])))
    if asked is None:
        return without_tools(draw, thinking)
    answer = assistant(draw.one(NO_TOOLS_AT_ALL), "There is no tool for this." if thinking else "")
    return Conversation((user(asked[0]), answer), (), thinking, "no tools")


def beside_tools(draw: Draw, before: list[Json], exchange: Exchange, thinking: bool) -> Conversation:
    """An ordinary question although tools are offered."""
    offers = [o for o in others_than(draw, draw.one(families()), draw.integer(1, 5), False) if o.family.key not in CATCH_ALL]
    thoughts = (exchange.thoughts or draw.one(NONE_FITS)) if thinking else ""
    turns = (*before, user(exchange.question), assistant(exchange.answer, thoughts))
    return Conversation(turns, tuple(o.tool for o in offers), thinking, "beside tools")
