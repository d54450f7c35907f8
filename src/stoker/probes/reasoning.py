"""Whether thinking can be asked for and switched off, where it arrives, and whether it is counted."""

from __future__ import annotations

from stoker.probes.kit.answer import Answer
from stoker.probes.kit.asker import Asker
from stoker.probes.kit.calm import CLOSING, LOOKING_TOKENS, OPENING, find_thinking
from stoker.probes.kit.findings import Declined, Finding, degraded, failed, not_offered, passed
from stoker.probes.kit.probe import Probe

QUESTION = "What is 17 + 25?"
EFFORT_TOKENS, PLACE_TOKENS, COUNTED_TOKENS, FEW_TOKENS, ROOM_TOKENS = 24, 48, 32, 8, 96
EFFORTS = ("none", "low", "medium", "high")
PARSER = "start the engine with the reasoning parser of the model's family (--reasoning-parser)"
NEVER = not_offered(
    "nothing that is known makes it think",
    "where it never does, serve it without a reasoning parser and without `reasoning`",
)


async def efforts(ask: Asker) -> Finding:
    """Each value of `reasoning_effort` changes something, or is refused, and is not silently ignored."""
    tried = {effort: await _try_effort(ask, effort) for effort in EFFORTS}
    said = ", ".join(f"{effort}: {_say(one)}" for effort, one in tried.items())
    thoughts = {effort: thought_of(one) for effort, one in tried.items() if isinstance(one, Answer)}
    thinking = [effort for effort, thought in thoughts.items() if thought]
    if "none" in thinking:
        return degraded(
            f"`none` does not switch thinking off ({said})", "chat_template_kwargs may: {'enable_thinking': false}"
        )
    if not thinking:
        return not_offered(f"no effort makes it think ({said})")
    return _differences(thoughts, thinking) or passed(said)


def _differences(thoughts: dict[str, str], thinking: list[str]) -> Finding | None:
    """Returns which efforts change nothing; None where each does something."""
    silent = [effort for effort, thought in thoughts.items() if effort != "none" and not thought]
    if silent:
        choices = ", ".join([*thinking, "none"])
        return degraded(
            f"{', '.join(silent)} is accepted and silently ignored, {', '.join(thinking)} makes it think",
            f"clients have to say one of: {choices}; the gateway's filter reasoning-effort maps others",
        )
    if len(thinking) > 1 and len({thoughts[effort] for effort in thinking}) == 1:
        return degraded(
            f"{', '.join(thinking)} make it think, and word for word the same: which of them is said changes nothing",
            f"{EFFORT_TOKENS} tokens were compared; there may be no more than on and off",
        )
    return None


async def _try_effort(ask: Asker, effort: str) -> Answer | Declined:
    try:
        return await ask.chat(QUESTION, max_tokens=EFFORT_TOKENS, calm={}, reasoning_effort=effort)
    except Declined as no:
        return no


def _say(tried: Answer | Declined) -> str:
    if isinstance(tried, Declined):
        return f"refused with HTTP {tried.status}"
    return f"thinks {len(thought_of(tried))} letters" if thought_of(tried) else "no thought"


def thought_of(answer: Answer) -> str:
    """Returns the train of thought, wherever it came."""
    return answer.thought or (answer.text if OPENING in answer.text or CLOSING in answer.text else "")


async def place(ask: Asker) -> Finding:
    """The train of thought arrives in a field of its own, apart from the answer."""
    way = await find_thinking(ask)
    if way is None:
        return NEVER
    answer = await ask.chat(QUESTION, max_tokens=PLACE_TOKENS, calm=way)
    if OPENING in answer.text or CLOSING in answer.text:
        return failed(f"the train of thought is part of the answer: {answer.text[:60]!r}", PARSER)
    field = "reasoning_content" if answer.message.reasoning_content else "reasoning"
    both = bool(answer.message.reasoning_content) and bool(answer.message.reasoning)
    if not answer.thought:
        return degraded(f"asked once more in the same way ({way}) it did not think")
    if both:
        return passed("it arrives in both reasoning_content and reasoning")
    other = "reasoning" if field == "reasoning_content" else "reasoning_content"
    return passed(f"it arrives in `{field}`; clients that read `{other}` need the gateway's filter reasoning-field")


async def counted(ask: Asker) -> Finding:
    """`usage` counts the tokens of the train of thought."""
    way = await find_thinking(ask)
    if way is None:
        return NEVER
    answer = await ask.chat(QUESTION, max_tokens=COUNTED_TOKENS, calm=way)
    usage = answer.completion.usage
    tokens = ((usage.completion_tokens_details if usage else None) or {}).get("reasoning_tokens")
    if not answer.thought:
        return degraded("the train of thought comes in no field of its own, so nobody can count it", PARSER)
    if isinstance(tokens, int) and tokens > 0:
        return passed(f"usage counts {tokens} reasoning tokens")
    if usage and usage.reasoning_tokens:
        return degraded(
            f"usage counts {usage.reasoning_tokens} reasoning tokens beside completion_tokens_details, where clients look",
            "the gateway's filter reasoning-tokens says them there",
        )
    said = "0" if tokens == 0 else "nothing"
    return degraded(
        f"it thinks, and usage says {said} of reasoning tokens",
        "what thinking costs cannot be seen; the gateway's filter reasoning-tokens counts it",
    )


async def too_few_tokens(ask: Asker) -> Finding:
    """Where thinking eats all tokens, the finish reason says so, and the answer has no half of a thought in it."""
    way = await find_thinking(ask)
    if way is None:
        return NEVER
    answer = await ask.chat(QUESTION, max_tokens=FEW_TOKENS, calm=way)
    if answer.finish != "length" and answer.text and answer.thought:
        return passed(f"{FEW_TOKENS} tokens were enough for a thought and an answer")
    if answer.finish != "length":
        return failed(f"{FEW_TOKENS} tokens were not enough, and it says that it ended for {answer.finish!r}")
    if answer.text and not answer.thought:
        return failed(f"a thought that was cut off is given as the answer: {answer.text[:60]!r}", PARSER)
    return passed("an answer that thinking left no tokens for says `length`")


async def enough_tokens(ask: Asker) -> Finding:
    """With enough tokens an answer follows the train of thought."""
    way = await find_thinking(ask)
    if way is None:
        return NEVER
    answer = await ask.chat(QUESTION, max_tokens=ROOM_TOKENS, calm=way)
    if answer.text:
        return passed(f"it thinks and then answers {answer.text[:40]!r}")
    if answer.finish == "length":
        return degraded(
            f"{ROOM_TOKENS} tokens were all thought, and the answer is empty", "give clients a larger max_tokens"
        )
    return failed(f"it thinks and ends for {answer.finish!r} without an answer", PARSER)


PROBE = Probe(
    name="reasoning",
    sends="A sum with each `reasoning_effort`, and with what makes the model think, with few tokens and with enough.",
    expects="Efforts that do something or are refused; thoughts in a field of their own, counted; an answer behind them.",
    means="Clients pay for thoughts that they cannot see or switch off, or get an empty answer.",
    mend=PARSER,
    checks=(efforts, place, counted, too_few_tokens, enough_tokens),
    tokens=len(EFFORTS) * EFFORT_TOKENS + PLACE_TOKENS + COUNTED_TOKENS + FEW_TOKENS + ROOM_TOKENS + LOOKING_TOKENS,
    gate=(place,),
    gate_tokens=PLACE_TOKENS + LOOKING_TOKENS,
)
