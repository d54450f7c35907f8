"""Whether as many requests as were planned are answered at once, none lost and none mixed up."""

from __future__ import annotations

import asyncio

from stoker.probes.kit.answer import Answer
from stoker.probes.kit.asker import Asker
from stoker.probes.kit.findings import Finding, Trouble, degraded, failed, passed
from stoker.probes.kit.probe import Probe

TOKENS = 16
UNPLANNED = 4
TWICE = 2


async def planned(ask: Asker) -> Finding:
    """The planned number of requests at once is answered, each with the tokens that it asked for."""
    return await _at_once(ask, ask.target.parallel or UNPLANNED)


async def over_plan(ask: Asker) -> Finding:
    """Twice as many wait or are refused in words; none is lost."""
    return await _at_once(ask, TWICE * (ask.target.parallel or UNPLANNED))


async def _at_once(ask: Asker, count: int) -> Finding:
    results = await asyncio.gather(*(_one(ask, number) for number in range(count)))
    troubles = [one for one in results if isinstance(one, str)]
    answers = [one for one in results if not isinstance(one, str)]
    if troubles:
        return failed(f"{len(troubles)} of {count} at once were lost: {troubles[0]}")
    empty = [one for one in answers if not one.text and not one.thought]
    if empty:
        return failed(f"{len(empty)} of {count} answers at once are empty")
    ids = {one.completion.id for one in answers}
    if len(ids) < count:
        return degraded(f"{count} answers at once share {len(ids)} ids, so logs cannot tell them apart")
    slowest_s = max(one.reply.took_s for one in answers)
    return passed(f"{count} at once were answered, the slowest after {slowest_s:.1f} s")


async def _one(ask: Asker, number: int) -> Answer | str:
    try:
        return await ask.chat(f"Say hello to number {number}.", max_tokens=TOKENS)
    except Trouble as trouble:
        return trouble.says


PROBE = Probe(
    name="concurrency",
    sends="As many short questions at once as the service was planned for (else 4), then twice as many.",
    expects="An answer to each, with an id of its own.",
    means="With a second user or an agent's second thread requests fail that work alone.",
    mend="plan with the number of clients (`parallel`), or let the gateway queue them",
    checks=(planned, over_plan),
    tokens=3 * UNPLANNED * TOKENS,
    deep=True,
)
