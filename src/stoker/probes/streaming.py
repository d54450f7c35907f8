"""Whether a streamed answer is what clients can read: its order, its end, its count, its pace, and its end by the client."""

from __future__ import annotations

from stoker.probes.kit.answer import Completion
from stoker.probes.kit.asker import Asker, Stream
from stoker.probes.kit.findings import Finding, degraded, failed, passed
from stoker.probes.kit.leaving import LONG_TOKENS, leave
from stoker.probes.kit.probe import Probe

QUESTION = "Count from 1 to 9."
LETTERS = "Repeat exactly: é ü 漢 字 🙂 🚀"
TOKENS, LETTER_TOKENS, PACE_TOKENS = 12, 24, 40
BUFFERED_SHARE = 0.9  # of the whole time passes before the first token, which then come all at once
SLOW_ENOUGH_S = 0.3


async def order(ask: Asker) -> Finding:
    """A role, then tokens, one finish reason, nothing after it, and `[DONE]`; each event has the same id."""
    stream = await ask.stream(QUESTION, max_tokens=TOKENS)
    wrong = [*_order_faults(stream.chunks), *_end_faults(stream)]
    if wrong:
        return failed("; ".join(wrong))
    first = next((chunk.choices for chunk in stream.chunks if chunk.choices), [])
    if not any(choice.delta and choice.delta.role for choice in first):
        return degraded("its first event does not say the role, which some clients wait for")
    return passed(f"{len(stream.events)} events: role, tokens, {stream.answer.finish}, end")


def _order_faults(chunks: list[Completion]) -> list[str]:
    faults = []
    finished = False
    for choice in (choice for chunk in chunks for choice in chunk.choices):
        if finished and choice.delta and choice.delta.says:
            faults.append("it sends tokens after the finish reason")
        if finished and choice.finish_reason:
            faults.append("it sends more than one finish reason")
        finished = finished or bool(choice.finish_reason)
    # Azure begins with an event about its filters, whose id is empty.
    if len({chunk.id for chunk in chunks if chunk.id}) > 1:
        faults.append("its events have different ids")
    return [*dict.fromkeys(faults), *([] if finished else ["it never says a finish reason"])]


def _end_faults(stream: Stream) -> list[str]:
    ends = [place for place, event in enumerate(stream.events) if event.data is None]
    if not ends:
        return ["it ends without [DONE], and clients wait on"]
    return ["it sends events after [DONE]"] if ends[0] != len(stream.events) - 1 else []


async def same_as_whole(ask: Asker) -> Finding:
    """The streamed tokens make the text that comes when it is not streamed."""
    stream = await ask.stream(QUESTION, max_tokens=TOKENS)
    whole = await ask.chat(QUESTION, max_tokens=TOKENS)
    if stream.answer.text == whole.text and stream.answer.thought == whole.thought:
        return passed("streamed and whole answers are the same")
    if not stream.answer.text and not stream.answer.thought:
        return failed("a streamed answer holds no token, a whole one does")
    return degraded(
        f"streamed and whole greedy answers differ: {stream.answer.text[:60]!r} and {whole.text[:60]!r}",
        "where `answers` says that greedy answers differ too, it is not the stream's fault",
    )


async def usage(ask: Asker) -> Finding:
    """Usage comes in the last event when it is asked for, and only then."""
    asked = await ask.stream(QUESTION, max_tokens=8, stream_options={"include_usage": True})
    if asked.answer.tokens is None:
        return degraded("usage was asked for, and no event brings it: nobody can count streamed tokens")
    if asked.chunks[-1].usage is None or asked.chunks[-1].choices:
        return degraded("usage does not come in an event of its own at the end, where clients look for it")
    return passed(f"the last event counts {asked.answer.tokens} tokens")


async def utf8(ask: Asker) -> Finding:
    """No letter is cut in two: events are UTF-8, without replacement characters."""
    stream = await ask.stream(LETTERS, max_tokens=LETTER_TOKENS)
    if "�" in stream.answer.text + stream.answer.thought:
        whole = await ask.chat(LETTERS, max_tokens=LETTER_TOKENS)
        # A model that ends in the middle of a letter leaves half of it, streamed or not.
        if "�" not in whole.text + whole.thought:
            return failed("letters are cut in two: its events hold U+FFFD where a whole answer holds letters")
    return passed("no letter is cut in two")


async def pace(ask: Asker) -> Finding:
    """Tokens arrive as they are made, and not all at the end."""
    stream = await ask.stream(QUESTION, max_tokens=PACE_TOKENS)
    spoken = [event.at_s for event, chunk in zip(stream.events, stream.chunks, strict=False) if _says(chunk)]
    took_s = stream.answer.reply.took_s
    if len(spoken) < 3 or took_s < SLOW_ENOUGH_S:
        return passed(f"{len(spoken)} events with tokens in {took_s:.2f} s, too fast to tell them apart")
    if spoken[-1] - spoken[0] < (1 - BUFFERED_SHARE) * took_s and not await _is_first_slow(ask, spoken[0]):
        return failed(
            f"all {len(spoken)} events with tokens came together after {spoken[0]:.2f} s: something keeps them back",
            "turn buffering off in the proxy (nginx: proxy_buffering off)",
        )
    return passed(f"tokens came over {spoken[-1] - spoken[0]:.2f} s, the first after {spoken[0]:.2f} s")


async def _is_first_slow(ask: Asker, first_s: float) -> bool:
    """Tells whether one token alone takes as long: a slow prompt or a queue, where what is kept back waits for the last."""
    return (await ask.stream(QUESTION, max_tokens=1)).answer.reply.took_s > first_s / 2


def _says(chunk: Completion) -> bool:
    return any(choice.delta is not None and choice.delta.says for choice in chunk.choices)


async def abort(ask: Asker) -> Finding:
    """A client that leaves frees its slot: the engine stops working for it."""
    return await leave(ask)


PROBE = Probe(
    name="streaming",
    sends="The same question streamed and whole, streamed with usage, one with letters of many bytes, and one that is left;"
    " a quick engine is left once more, with five seconds' worth of tokens beyond the number said here.",
    expects="Role, tokens, one finish reason, `[DONE]`; the same text; usage; whole letters; a pace; a freed slot.",
    means="Chat windows hang, show nothing until the end, or drop text; who closes a window goes on using the GPU.",
    mend="ask the engine without what is in front of it: where that is well, a proxy rewrites the stream",
    checks=(order, same_as_whole, usage, utf8, pace, abort),
    tokens=3 * TOKENS + 8 + LETTER_TOKENS + PACE_TOKENS + 3 + LONG_TOKENS // 10,
    gate=(order,),
    gate_tokens=TOKENS,
)
