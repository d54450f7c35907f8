"""Whether an answer has the form that was asked for, by the engine's force and not by the model's goodwill."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from stoker.probes.kit.answer import Answer
from stoker.probes.kit.asker import Asker
from stoker.probes.kit.findings import Declined, Finding, degraded, failed, not_offered, passed
from stoker.probes.kit.probe import Probe

TOKENS = 40
QUESTION = "Who are you?"  # nothing in it suggests the form
# Seen with vLLM 0.32: a small model goes on with blanks, which its grammar allows between any two words of JSON.
BLANKS = "forbid blanks (vLLM: --structured-outputs-config '{\"disable_any_whitespace\": true}'), or allow more tokens"
MEND = "start the engine with structured outputs, or check answers in the client"


class Form(msgspec.Struct, forbid_unknown_fields=True):
    """What the schema allows; no model would say it by itself."""

    colour: Literal["violet", "amber"]
    count: Literal[3, 5]


SCHEMA = {
    "type": "object",
    "properties": {"colour": {"enum": ["violet", "amber"]}, "count": {"enum": [3, 5]}},
    "required": ["colour", "count"],
    "additionalProperties": False,
}
BY_SCHEMA = {"type": "json_schema", "json_schema": {"name": "form", "strict": True, "schema": SCHEMA}}


async def schema(ask: Asker) -> Finding:
    """An answer by a schema that the question does not suggest."""
    try:
        answer = await ask.chat(QUESTION, max_tokens=TOKENS, response_format=BY_SCHEMA)
    except Declined as no:
        return not_offered(no.says, MEND)
    return _judge(answer, Form, "the schema is silently ignored")


async def schema_streamed(ask: Asker) -> Finding:
    """The same, streamed."""
    try:
        stream = await ask.stream(QUESTION, max_tokens=TOKENS, response_format=BY_SCHEMA)
    except Declined as no:
        return not_offered(no.says, MEND)
    return _judge(stream.answer, Form, "streamed, the schema is silently ignored")


async def json_object(ask: Asker) -> Finding:
    """Any JSON object."""
    try:
        # OpenAI refuses this form where the prompt does not speak of JSON.
        answer = await ask.chat("Name a city, as JSON.", max_tokens=TOKENS, response_format={"type": "json_object"})
    except Declined as no:
        return not_offered(no.says, MEND)
    return _judge(answer, dict[str, Any], "json_object is silently ignored")


def _judge(answer: Answer, kind: Any, wrong: str) -> Finding:
    text = answer.text
    try:
        msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as problem:
        return failed(f"{wrong}: {text[:60]!r} ({problem})", MEND)
    except msgspec.MsgspecError as problem:
        if answer.finish == "length" and text.lstrip().startswith("{"):
            return degraded(f"the form is kept, and {TOKENS} tokens did not fill it: {text[:60]!r}", BLANKS)
        return failed(f"{wrong}: {text[:60]!r} ({problem})", MEND)
    return passed(f"it answers {' '.join(text.split())[:60]}")


PROBE = Probe(
    name="structured",
    sends="A question that suggests no form, with a JSON schema, whole and streamed; one with `json_object`.",
    expects="JSON that the schema allows; or a refusal.",
    means="Programs that read the answer break, at random.",
    mend=MEND,
    checks=(schema, schema_streamed, json_object),
    tokens=3 * TOKENS,
)
