"""Whether a token that is forbidden by `logit_bias` does not come."""

from __future__ import annotations

from typing import Any

import msgspec

from stoker.probes.kit.asker import Asker
from stoker.probes.kit.findings import Declined, Finding, failed, not_offered, passed, unknown
from stoker.probes.kit.probe import Probe
from stoker.probes.kit.reply import OK

QUESTION = "Who are you?"
TOKENS = 8
FORBIDDEN = -100


async def forbidden(ask: Asker) -> Finding:
    """The first word of the model's own answer does not come where its tokens are forbidden."""
    said = (await ask.chat(QUESTION, max_tokens=TOKENS)).text
    word = said.split(" ")[0]
    numbers = await _token_numbers(ask, word) if word else []
    if not numbers:
        return unknown("the engine's /tokenize was not to be read, so no token's number is known", "name it with --engine")
    bias = {str(number): FORBIDDEN for number in numbers}
    try:
        other = (await ask.chat(QUESTION, max_tokens=TOKENS, logit_bias=bias)).text
    except Declined as no:
        return not_offered(f"logit_bias: {no.says}")
    if other == said:
        return failed(
            f"the tokens of {word!r} were forbidden, and it says {other!r} as before: logit_bias is silently ignored"
        )
    return passed(f"with {word!r} forbidden it says {other!r} instead of {said!r}")


async def _token_numbers(ask: Asker, word: str) -> list[int]:
    """Returns the tokens of a word; llama.cpp calls the text `content`, vLLM and SGLang call it `prompt`."""
    body: dict[str, Any] = {"model": ask.target.model, "prompt": word, "content": word, "add_special_tokens": False}
    reply = await (ask.engine() or ask).send_beside("/tokenize", body, with_key=True)
    if reply.status != OK:
        return []
    try:
        return msgspec.json.decode(reply.body, type=_Tokens).tokens
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return []


class _Tokens(msgspec.Struct):
    tokens: list[int]


PROBE = Probe(
    name="logit-bias",
    sends="A question, and the same again with the tokens of the answer's first word forbidden.",
    expects="Another beginning, or a refusal.",
    means="What clients forbid is said all the same.",
    mend="no harm where no client uses it; grammars and schemas are the surer way",
    checks=(forbidden,),
    tokens=2 * TOKENS,
    deep=True,
)
