"""Whether what stands at the beginning, in the middle and at the end of a long prompt is still seen."""

from __future__ import annotations

from stoker.probes.kit.asker import Asker
from stoker.probes.kit.context import read_context_tokens
from stoker.probes.kit.findings import Declined, Finding, degraded, failed, passed, unknown
from stoker.probes.kit.memory_watch import MemoryWatch
from stoker.probes.kit.probe import Probe

TOKENS = 24
NEEDLE = "7391"
SENTENCE = "The river runs to the sea and the day goes on. "
QUESTION = "What is the secret number?"
FEW, MANY = 4, 24
FILLED, ROOM_TOKENS = 0.9, 80  # the template, the question and the answer take some
LIMIT_S = 240.0  # the first long prompt compiles kernels on top of its own time


async def beginning(ask: Asker) -> Finding:
    """A number near the beginning of a prompt that fills nine tenths of the context."""
    return await _seek(ask, 0.05)


async def middle(ask: Asker) -> Finding:
    """A number in its middle."""
    return await _seek(ask, 0.5)


async def end(ask: Asker) -> Finding:
    """A number near its end."""
    return await _seek(ask, 0.95)


async def _seek(ask: Asker, depth: float) -> Finding:
    context = await read_context_tokens(ask)
    if context is None:
        return unknown("nobody says how long its context is", "name the engine with --engine")
    each = await _sentence_tokens(ask)
    if each is None:
        return unknown("it does not count the tokens of prompts")
    count = max(4, int((context * FILLED - ROOM_TOKENS) / each))
    before = int(count * depth)
    text = f"{SENTENCE * before}The secret number is {NEEDLE}. {SENTENCE * (count - before)}\n{QUESTION}"
    memory = MemoryWatch(None if ask.target.box else ask.target.url)
    try:
        with memory:
            answer = await ask.chat(text, max_tokens=TOKENS, limit_s=LIMIT_S)
    except Declined as no:
        return failed(
            f"a prompt that fills nine tenths of its {context} tokens is refused: {no.says}", "plan with less context"
        )
    used = answer.completion.usage.prompt_tokens if answer.completion.usage else None
    seen = f"at {depth:.0%} of {used or 'an unknown number of'} tokens, of {context}"
    if memory.is_short:
        return degraded(
            f"it took nearly all memory{memory}, {seen}", "plan with less context, or a smaller share of the memory"
        )
    if NEEDLE in answer.text:
        return passed(f"seen {seen}, after {answer.reply.took_s:.1f} s{memory}")
    if used is not None and used < count * each / 2:
        return failed(f"only {used} tokens of the prompt were read: it is cut down in silence")
    return degraded(
        f"not seen {seen}: it says {answer.text[:40]!r}", "small models overlook it; larger ones with a broken cache do"
    )


async def _sentence_tokens(ask: Asker) -> float | None:
    """Returns how many tokens this vocabulary makes of the sentence."""
    counted = []
    for count in (FEW, MANY):
        usage = (await ask.chat(SENTENCE * count, max_tokens=1)).completion.usage
        counted.append(usage.prompt_tokens if usage else None)
    few, many = counted
    return (many - few) / (MANY - FEW) if few is not None and many is not None and many > few else None


PROBE = Probe(
    name="long-context",
    sends="A prompt that fills nine tenths of the context, with a number at its beginning, in its middle and at its end.",
    expects="The number; and, where the endpoint is on this machine, memory that stays free meanwhile.",
    means="Long conversations and documents are read in part, and answered as if in full.",
    mend="plan with a context that the model was trained for, and look at the type of its cache",
    checks=(beginning, middle, end),
    tokens=3 * (TOKENS + 2),
    deep=True,
)
