"""Whether a seed makes a random answer the same again."""

from __future__ import annotations

from stoker.probes.kit.asker import Asker
from stoker.probes.kit.findings import Declined, Finding, degraded, not_offered, passed, unknown
from stoker.probes.kit.probe import Probe

QUESTION = "Who are you?"
TOKENS = 12
TEMPERATURE = 2.0  # the most that is allowed
OTHERS = (2, 3, 4)


async def same(ask: Asker) -> Finding:
    """The same seed gives the same answer, and others give others."""
    try:
        first, again = [await _ask(ask, 1) for _ in range(2)]
    except Declined as no:
        return not_offered(no.says)
    if first != again:
        return degraded(f"one seed gave {first[:40]!r} and {again[:40]!r}", "no harm where nothing has to be repeated")
    if all([await _ask(ask, seed) == first for seed in OTHERS]):
        return unknown(f"all seeds give {first[:40]!r}: the model leaves no choice, or the seed is ignored")
    return passed("the same seed gives the same answer, another one another")


async def _ask(ask: Asker, seed: int) -> str:
    answer = await ask.chat(QUESTION, max_tokens=TOKENS, temperature=TEMPERATURE, seed=seed)
    return answer.text or answer.thought


PROBE = Probe(
    name="seed",
    sends="A question at a high temperature, twice with one seed, and with others.",
    expects="The same answer for the same seed.",
    means="Tests and evaluations that count on a seed cannot be repeated.",
    mend="ask greedily (temperature 0) where answers have to be repeated",
    checks=(same,),
    tokens=(2 + len(OTHERS)) * TOKENS,
)
