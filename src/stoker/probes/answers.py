"""Whether the model that was named gives real tokens, and the same ones when asked the same."""

from __future__ import annotations

import math
from typing import Any

from stoker.probes.kit.asker import Asker
from stoker.probes.kit.findings import Declined, Finding, degraded, failed, not_offered, passed, unknown
from stoker.probes.kit.probe import Probe

TOKENS = 16
SAME_TOKENS = 24
QUESTION = "Who are you?"


async def tokens(ask: Asker) -> Finding:
    """A short question gets text, or a train of thought, and as many tokens as `usage` says."""
    answer = await ask.chat(QUESTION, max_tokens=TOKENS)
    if not answer.text and not answer.thought:
        return failed("it answered HTTP 200 without a single token")
    if answer.tokens is None:
        return degraded("it gives tokens and no `usage`, so nobody can count them")
    if not 0 < answer.tokens <= TOKENS + 1:  # some engines count the token that ends the answer
        return failed(f"it was asked for at most {TOKENS} tokens and counts {answer.tokens}")
    return passed(f"{answer.tokens} tokens: {(answer.text or answer.thought).strip()[:60]!r}")


async def named(ask: Asker) -> Finding:
    """The answer says that it is from the model that was asked for."""
    answer = await ask.chat(QUESTION, max_tokens=1)
    said = answer.completion.model
    if not said:
        return degraded("it does not say which model answered")
    if said == ask.target.model:
        return passed(f"it says that {said} answered")
    if said.rpartition("/")[2] == ask.target.model.rpartition("/")[2]:
        return passed(f"it says that {said} answered, which is {ask.target.model} under its full name")
    return failed(f"{ask.target.model} was asked and it says that {said} answered")


async def logprobs(ask: Asker) -> Finding:
    """The logprobs of tokens, where they are offered, are finite and not above zero."""
    try:
        answer = await ask.chat(QUESTION, max_tokens=4, logprobs=True)
    except Declined as no:
        return not_offered(f"no logprobs: {no.says}")
    values = _logprobs((answer.completion.choices[0].logprobs or {}).get("content"))
    if not values:
        return not_offered("logprobs were asked for, and none came")
    wrong = [value for value in values if not math.isfinite(value) or value > 0.0]
    if wrong:
        return failed(f"{len(wrong)} of {len(values)} logprobs are no logarithm of a probability: {wrong[0]}")
    return passed(f"{len(values)} finite logprobs")


def _logprobs(content: Any) -> list[float]:
    items = content if isinstance(content, list) else []
    found = [one.get("logprob") for one in items if isinstance(one, dict)]
    return [float("nan") if not isinstance(one, int | float) else float(one) for one in found]


async def same_twice(ask: Asker) -> Finding:
    """The same greedy question gets the same answer."""
    first = await ask.chat(QUESTION, max_tokens=SAME_TOKENS)
    second = await ask.chat(QUESTION, max_tokens=SAME_TOKENS)
    if not first.text and not first.thought:
        return unknown("there was no text to compare")
    if (first.text, first.thought) == (second.text, second.thought):
        return passed("the same greedy answer twice")
    return degraded(
        f"two greedy answers differ: {first.text[:50]!r} and {second.text[:50]!r}",
        "batching and some kernels change the last digits of sums; no harm where nothing is compared",
    )


PROBE = Probe(
    name="answers",
    sends="A short question, greedy, with and without logprobs, and once more.",
    expects="Tokens, as many as `usage` counts; the model's name; finite logprobs; the same answer twice.",
    means="The server runs and does not serve: no client gets anything out of it.",
    mend="look at the engine's log; ask for /v1/models to see which names it knows",
    checks=(tokens, named, logprobs, same_twice),
    tokens=TOKENS + 1 + 4 + 2 * SAME_TOKENS,
    gate=(tokens, named),
    gate_tokens=TOKENS + 1,
)
