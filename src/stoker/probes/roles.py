"""Which orders of turns are accepted, and what those are told that are not: templates differ, and so do clients."""

from __future__ import annotations

from typing import Any

from stoker.probes.kit.asker import Asker, Messages
from stoker.probes.kit.findings import Declined, Finding, degraded, failed, passed
from stoker.probes.kit.probe import Probe

TOKENS = 4
USER = {"role": "user", "content": "Say hello."}
ANSWER = {"role": "assistant", "content": "Hello."}
SYSTEM = {"role": "system", "content": "Be short."}
FIRST_SERVER_ERROR = 500


async def system_first(ask: Asker) -> Finding:
    """A system turn before the first user turn."""
    return await _try(ask, [SYSTEM, USER], "nearly every client sends one; choose a template that knows the system role")


async def two_users(ask: Asker) -> Finding:
    """Two user turns in a row."""
    mend = "OpenHands and Crush send such turns: enable_prompt_extensions=false there, or the gateway's filter merge-turns"
    return await _try(ask, [USER, {"role": "user", "content": "And again."}], mend)


async def late_system(ask: Asker) -> Finding:
    """A system turn after the conversation has begun."""
    return await _try(ask, [USER, ANSWER, SYSTEM, USER], "agents that remind the model in a system turn will be refused")


async def developer(ask: Asker) -> Finding:
    """A developer turn, as newer clients of OpenAI send instead of a system turn."""
    return await _try(ask, [{"role": "developer", "content": "Be short."}, USER], "tell the client to send `system` instead")


async def parts(ask: Asker) -> Finding:
    """A turn whose content is a list of text parts."""
    turn = {"role": "user", "content": [{"type": "text", "text": "Say"}, {"type": "text", "text": "hello."}]}
    return await _try(ask, [turn], "Open WebUI, Continue and others send parts; vLLM: --chat-template-content-format")


async def tool_turn(ask: Asker) -> Finding:
    """A call of a tool and its result in the history, without tools in the request."""
    call = {"id": "call00001", "type": "function", "function": {"name": "get_time", "arguments": "{}"}}
    turns: list[dict[str, Any]] = [
        USER, {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call00001", "content": "noon"},
    ]  # fmt: skip
    return await _try(ask, turns, "agents that sum up a conversation send its calls without the tools")


async def _try(ask: Asker, turns: Messages, mend: str) -> Finding:
    try:
        answer = await ask.chat(turns, max_tokens=TOKENS)
    except Declined as no:
        if no.status >= FIRST_SERVER_ERROR:
            return failed(f"it breaks instead of refusing: {no.says}", mend)
        return degraded(f"refused: {no.says}", mend)
    return passed("accepted") if answer.text or answer.thought or answer.calls else degraded("accepted, and nothing is said")


PROBE = Probe(
    name="roles",
    sends="A system turn first, and later; two user turns in a row; a developer turn; parts; a tool's turn.",
    expects="An answer to each; else a clear refusal, from which it follows which clients need a setting.",
    means="Some clients work and others get HTTP 400 in the middle of a conversation.",
    mend="set what the client offers, or a filter of the gateway",
    checks=(system_first, two_users, late_system, developer, parts, tool_turn),
    tokens=6 * TOKENS,
)
