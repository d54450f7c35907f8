"""Whether `n` answers come where `n` were asked for."""

from __future__ import annotations

from stoker.probes.kit.asker import Asker
from stoker.probes.kit.findings import Declined, Finding, failed, not_offered, passed
from stoker.probes.kit.probe import Probe

TOKENS = 8


async def two(ask: Asker) -> Finding:
    """With `n` 2 two answers come, told apart by their index."""
    try:
        answer = await ask.chat("Say hello.", max_tokens=TOKENS, n=2, temperature=1)
    except Declined as no:
        return not_offered(f"n: {no.says}")
    found = sorted(choice.index for choice in answer.completion.choices)
    if found != [0, 1]:
        return failed(f"two answers were asked for, and those with index {found} came: n is silently ignored")
    return passed("two answers, told apart by their index")


PROBE = Probe(
    name="n",
    sends="A question with `n` 2.",
    expects="Two answers, or a refusal.",
    means="Clients that choose among several answers get one, and think that they chose.",
    mend="ask several times in the client",
    checks=(two,),
    tokens=2 * TOKENS,
    deep=True,
)
