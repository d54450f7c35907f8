"""Whether limits hold: of tokens, of the context; and whether what is over or beside them is refused in words."""

from __future__ import annotations

from stoker.probes.kit.answer import read_answer
from stoker.probes.kit.asker import Asker
from stoker.probes.kit.context import read_context_tokens
from stoker.probes.kit.findings import Declined, Finding, degraded, failed, passed, unknown
from stoker.probes.kit.probe import Probe
from stoker.probes.kit.reply import OK, error_message, is_page, read_json
from stoker.probes.kit.wire import Reply

QUESTION = "Count from 1 to 9."
FEW = 3
MOST_CONTEXT_TOKENS = 262_144
FIRST_CLIENT_ERROR, FIRST_SERVER_ERROR = 400, 500


async def max_tokens(ask: Asker) -> Finding:
    """`max_tokens` ends an answer, with `length` as its reason."""
    return await _cap(ask, "max_tokens")


async def max_completion_tokens(ask: Asker) -> Finding:
    """Its newer name does so too."""
    return await _cap(ask, "max_completion_tokens")


async def _cap(ask: Asker, name: str) -> Finding:
    body = {**ask.body(QUESTION, FEW, {}), name: FEW}
    if name != "max_tokens":
        del body["max_tokens"]
    try:
        answer = read_answer(await ask.send("/chat/completions", body, limit_s=10.0))
    except Declined as no:
        return degraded(
            f"{name} is refused: {no.says}", "newer clients of OpenAI send max_completion_tokens, older ones max_tokens"
        )
    if answer.tokens is not None and answer.tokens > FEW + 1:
        return failed(f"{name} was {FEW}, and {answer.tokens} tokens came: {answer.text[:40]!r}")
    if answer.finish != "length":
        return failed(f"cut off after {FEW} tokens it says that it ended for {answer.finish!r}: clients take it for whole")
    return passed(f"{name} {FEW} ends it, for `length`")


async def over_long(ask: Asker) -> Finding:
    """A prompt over the context is refused, and not cut down to it in silence."""
    context = await read_context_tokens(ask)
    if context is None or context > MOST_CONTEXT_TOKENS:
        return unknown(
            f"the context is {context or 'unknown'}, so no prompt is surely too long", "name the engine with --engine"
        )
    reply = await ask.send("/chat/completions", ask.body("word " * (context + 64), 1, {}))
    return _judge(reply, f"a prompt of more than {context} tokens", "clients lose the beginning of a conversation unawares")


async def bad_json(ask: Asker) -> Finding:
    """A body that is no JSON is refused with an error that clients can read."""
    return _judge(await ask.send("/chat/completions", b'{"model": '), "a body that is no JSON", "")


async def bad_type(ask: Asker) -> Finding:
    """A field of the wrong type is refused with an error that clients can read."""
    reply = await ask.send("/chat/completions", {**ask.body("Say hello.", 1, {}), "messages": "hello"})
    return _judge(reply, "messages that are no list", "")


def _judge(reply: Reply, what: str, harm: str) -> Finding:
    status = reply.status
    if status is None or reply.problem:
        return failed(f"{what}: {reply.problem}")
    if status == OK:
        read_json(reply)
        return failed(f"{what} is answered with HTTP 200: {harm or 'errors of clients go unnoticed'}")
    if status >= FIRST_SERVER_ERROR:
        return degraded(f"{what} makes it say HTTP {status}, as if it were its own fault: clients and routers try again")
    if is_page(reply) or not error_message(reply):
        return degraded(f"{what} is refused with HTTP {status} and no message that clients can read")
    return passed(f"{what} is refused: HTTP {status}: {error_message(reply)[:100]}")


PROBE = Probe(
    name="limits",
    sends="A question with three tokens to answer, under both names; a prompt over the context; bodies that make no sense.",
    expects="Three tokens and `length`; HTTP 400 with a message for the rest.",
    means="Answers without end hold the GPU, or conversations lose their beginning without a word.",
    mend="set limits in the gateway (filter cap-tokens); shorten in the client what it refuses",
    checks=(max_tokens, max_completion_tokens, over_long, bad_json, bad_type),
    tokens=2 * FEW + 2,
)
