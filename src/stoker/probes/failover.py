"""Whether errors reach the caller, or a router answers in the model's place without a word."""

from __future__ import annotations

from stoker.probes.kit.asker import Asker
from stoker.probes.kit.context import MOST_CONTEXT_TOKENS, no_over_long, read_context_tokens
from stoker.probes.kit.findings import Finding
from stoker.probes.kit.probe import Probe
from stoker.probes.kit.temptation import tempt
from stoker.probes.kit.tool_flags import advise_flags
from stoker.probes.kit.tools import QUESTION, TOOLS, called
from stoker.records import Verdict

TOKENS, FEW_TOKENS = 16, 8
NO_FALLBACK = "take the fallbacks out of the router (LiteLLM: no `fallbacks`, `default_fallbacks`), or let it pass errors on"
WORD = "word "  # at least a token in every vocabulary


async def tool_choice(ask: Asker) -> Finding:
    """Requests with tools, which vLLM refuses without a tool parser."""
    plain = ask.body(QUESTION, TOKENS, {"tools": TOOLS})
    bodies = [plain, {**plain, "tool_choice": "auto"}, {**plain, "tool_choice": "auto", "stream": True}]
    finding = await tempt(ask, bodies)
    if finding.verdict is Verdict.FAIL:
        return finding._replace(mend=f"{await advise_flags(ask)}; and {NO_FALLBACK}")
    return finding


async def over_long(ask: Asker) -> Finding:
    """A prompt that is longer than the context."""
    context = await read_context_tokens(ask)
    if context is None or context > MOST_CONTEXT_TOKENS:
        return no_over_long(context)
    body = ask.body(WORD * (context + 64), 1, {})
    return await tempt(ask, [body], f"shorten the prompt in the client, or plan more context; and {NO_FALLBACK}")


async def bad_parameter(ask: Asker) -> Finding:
    """A parameter with a value that makes no sense."""
    return await tempt(ask, [ask.body("Say hello.", TOKENS, {"top_p": 7})], NO_FALLBACK)


async def server_error(ask: Asker) -> Finding:
    """A call of the past whose arguments break off, as models write them now and then: HTTP 500 in llama.cpp b11549."""
    return await tempt(ask, [ask.body(called('{"city": "Par', "fog"), FEW_TOKENS, {})], NO_FALLBACK)


async def time_out(ask: Asker) -> Finding:
    """A time limit of a millisecond, which LiteLLM takes from the request; engines do not know it."""
    return await tempt(ask, [ask.body("Say hello.", TOKENS, {"timeout": 0.001})], NO_FALLBACK)


PROBE = Probe(
    name="failover",
    sends="What an engine may refuse: tools in three ways, an over-long prompt, a senseless parameter, a call that breaks "
    "off, a tiny time limit.",
    expects="The error of the engine, or an answer that the engine itself has counted.",
    means="What the engine refuses another model answers, and nobody notices: not the model that you serve is in use.",
    mend=NO_FALLBACK,
    checks=(tool_choice, over_long, bad_parameter, server_error, time_out),
    tokens=5 * TOKENS + FEW_TOKENS + 5 * 2,
)
