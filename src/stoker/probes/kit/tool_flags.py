"""What an engine has to be started with, so that it finds the calls of tools in what this model writes."""

from __future__ import annotations

import re

from stoker.engines import find, names
from stoker.probes.kit.asker import Asker
from stoker.probes.kit.findings import Trouble
from stoker.probes.kit.tools import QUESTION, TOKENS, TOOLS
from stoker.rules.compare import all_hold
from stoker.rules.load import load_rules

PARSER = "--tool-call-parser"
NOT_FORCED = "the engine does not hold the model to it; `strict`, another template or another engine may"
FORBIDDEN = "clients that forbid tools should not send them"


def has_mark(text: str) -> bool:
    """Tells whether a text holds the beginning of a call that no parser took out of it."""
    return any(re.search(mark, text) for engine in names() for mark, _ in find(engine).tool_marks)


async def advise_flags(ask: Asker, seen: str = "") -> str:
    """Returns what to start the engine with; `seen` is a text of this model with a call in it, if there is one."""
    counters = await ask.read_counters()
    engine = counters.engine if counters else None
    if engine is None:
        every = "; ".join(f"{name}: `{find(name).tool_words.format(parser='PARSER')}`" for name in names())
        return f"start its engine so that it finds calls of tools in the model's text ({every})"
    text = seen if has_mark(seen) else await _written_call(ask.engine() or ask)
    parser = _by_mark(engine, text) or _by_rule(engine, ask.target.model) or "PARSER, that of your model's family"
    return f"start it with `{find(engine).tool_words.format(parser=parser)}`"


async def advise_forcing(ask: Asker) -> str:
    """Returns what to do where no call comes although one was demanded, in the words of the engine that runs."""
    counters = await ask.read_counters()
    return (find(counters.engine).tools_unforced if counters else "") or NOT_FORCED


async def advise_forbidding(ask: Asker) -> str:
    """Returns what to do where the model writes a call although tools were forbidden."""
    counters = await ask.read_counters()
    more = find(counters.engine).tools_unforbidden if counters else ""
    return f"{FORBIDDEN}; {more}" if more else FORBIDDEN


async def _written_call(ask: Asker) -> str:
    """Returns what the model writes when it knows the tools and nobody looks for calls."""
    try:
        return (await ask.chat(QUESTION, max_tokens=TOKENS, tools=TOOLS, tool_choice="none")).text
    except Trouble:
        return ""


def _by_mark(engine: str, text: str) -> str | None:
    return next((parser for mark, parser in find(engine).tool_marks if re.search(mark, text)), None)


def _by_rule(engine: str, model: str) -> str | None:
    """Returns the parser that a rule has mended such a launch with, by the model's name."""
    for rule in load_rules(engine):
        scope = {"model": rule.when["model"]} if "model" in rule.when else {}
        if PARSER in rule.use and scope and all_hold(scope, {"model": model}):
            return str(rule.use[PARSER])
    return None
