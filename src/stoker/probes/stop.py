"""Whether an answer ends before a stop sequence, and nothing of that is sent."""

from __future__ import annotations

from stoker.probes.kit.answer import Answer
from stoker.probes.kit.asker import Asker
from stoker.probes.kit.findings import Finding, failed, passed, unknown
from stoker.probes.kit.probe import Probe

QUESTION = "Who are you?"
TOKENS = 16
LENGTH, SHORTEST = 4, 8


async def whole(ask: Asker) -> Finding:
    """A sequence out of the middle of the model's own answer ends it there."""
    said = (await ask.chat(QUESTION, max_tokens=TOKENS)).text
    if (sequence := _middle_of(said)) is None:
        return unknown(f"its answer {said!r} is too short to be stopped in the middle")
    return _judge(said, sequence, await ask.chat(QUESTION, max_tokens=TOKENS, stop=[sequence]))


async def streamed(ask: Asker) -> Finding:
    """The same, streamed: no piece of the sequence gets out before it is whole."""
    said = (await ask.chat(QUESTION, max_tokens=TOKENS)).text
    if (sequence := _middle_of(said)) is None:
        return unknown(f"its answer {said!r} is too short to be stopped in the middle")
    return _judge(said, sequence, (await ask.stream(QUESTION, max_tokens=TOKENS, stop=[sequence])).answer)


def _middle_of(text: str) -> str | None:
    """Returns some letters that are likely to lie across two tokens; None where the text has no middle."""
    middle = len(text) // 2
    found = text[middle - LENGTH // 2 : middle + LENGTH // 2]
    return found if len(text) >= SHORTEST and found.strip() else None


def _judge(said: str, sequence: str, answer: Answer) -> Finding:
    expected = said[: said.index(sequence)]
    if sequence in answer.text:
        return failed(f"it says {answer.text[:60]!r} although {sequence!r} was to stop it")
    if answer.finish != "stop":
        return failed(f"stopped by {sequence!r} it says that it ended for {answer.finish!r}")
    if answer.text == expected:
        return passed(f"{sequence!r} stops it after {answer.text[-20:]!r}")
    if expected.startswith(answer.text) or answer.text.startswith(expected):
        return failed(f"stopped by {sequence!r} it says {answer.text!r}, and {expected!r} was to come")
    return unknown("asked the same it said something else, so nothing can be compared")


PROBE = Probe(
    name="stop",
    sends="A question, and the same again with four letters from the middle of its answer as the stop sequence.",
    expects="The answer up to these letters, and `stop` as its reason, streamed too.",
    means="Agents and code completion read on where the model should have ended.",
    mend="end the answer in the client; ask the engine without what stands in front of it",
    checks=(whole, streamed),
    tokens=4 * TOKENS,
)
