"""Whether the engine that should serve is the one that answers: by its own counters, and by what routers say."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from stoker.counters import Counters
from stoker.probes.kit.answer import Answer, read_answer
from stoker.probes.kit.asker import Asker
from stoker.probes.kit.findings import Declined, Finding, degraded, failed, passed, unknown
from stoker.probes.kit.probe import Probe
from stoker.probes.kit.routers import who_answered

REQUESTS, TOKENS = 3, 6
LOOKS, LOOK_EVERY_S = 20, 0.1  # engines count a request a moment after they have answered it
STRANGER = "stoker-no-such-model"


async def counters(ask: Asker) -> Finding:
    """The engine's own counters move by exactly the requests and tokens that were sent and received."""
    before = await ask.read_counters()
    if before is None:
        return unknown(
            "the engine's /metrics was not to be read, so only the answers themselves speak for it",
            "name the engine's own address with --engine URL; llama.cpp and SGLang count with --metrics, --enable-metrics",
        )
    answers = [await ask.chat(f"Say hello to number {number}.", max_tokens=TOKENS) for number in range(REQUESTS)]
    counted = [answer.tokens for answer in answers]
    sent = {"requests_total": REQUESTS}
    if None not in counted:
        sent["generated_tokens_total"] = sum(one or 0 for one in counted)
    moved = await _await_counters(ask, before, sent)
    return _compare(before, sent, moved, answers)


async def _await_counters(ask: Asker, before: Counters, sent: Mapping[str, int]) -> dict[str, int]:
    """Returns by how much the counters moved, once they moved enough or time is over."""
    moved: dict[str, int] = {}
    for _ in range(LOOKS):
        now = await ask.read_counters()
        moved = now.since(before) if now else moved
        if all(moved.get(name, count) >= count for name, count in sent.items()):
            break
        await asyncio.sleep(LOOK_EVERY_S)
    return moved


def _compare(before: Counters, sent: Mapping[str, int], moved: Mapping[str, int], answers: list[Answer]) -> Finding:
    both = {name: (count, moved[name]) for name, count in sent.items() if name in moved}
    if not both:
        return unknown(f"{before.engine}'s /metrics has no counter of requests or of tokens that could be compared")
    seen = ", ".join(f"{moved} {_word(name)} of {sent}" for name, (sent, moved) in both.items())
    missing = [name for name, (sent, moved) in both.items() if moved < sent]
    if missing:
        named = sorted({answer.completion.model or "no name" for answer in answers})
        who = who_answered([answer.reply for answer in answers]) or f"under the name {', '.join(named)}"
        return failed(f"{before.engine} counted {seen}: the rest was answered by somebody else, {who}")
    if any(moved > sent for sent, moved in both.values()):
        return unknown(
            f"{before.engine} counted {seen}: others ask it too, so it proves nothing", "ask again while it is idle"
        )
    return passed(f"{before.engine} itself counted {seen}")


def _word(counter: str) -> str:
    return "requests" if counter == "requests_total" else "generated tokens"


async def headers(ask: Asker) -> Finding:
    """The headers of known routers do not tell of another model, or of a fallback."""
    answer = await ask.chat("Say hello.", max_tokens=1)
    who = who_answered([answer.reply])
    return failed(f"its headers say: {who}") if who else passed("no header of a known router tells of another model")


async def strange_name(ask: Asker) -> Finding:
    """A model's name that does not exist is refused, and not answered by whichever model is there."""
    body = {**ask.body("Say hello.", 1, {}), "model": STRANGER}
    reply = await ask.send("/chat/completions", body)
    try:
        said = read_answer(reply).completion.model
    except Declined as no:
        return passed(f"a model that does not exist is refused: {no.says[:120]}")
    return degraded(
        f"it answers for `{STRANGER}`, which does not exist, and says that {said or 'nobody'} answered",
        "so a typing error in a client's model name goes unnoticed; a gateway in front can refuse it",
    )


PROBE = Probe(
    name="identity",
    sends="Three short questions between two looks at the engine's /metrics; then one for a model that does not exist.",
    expects="Counters that moved by exactly what was sent and received; no router's header that names another; a refusal.",
    means="Somebody else answers for this model: what is measured, paid and trusted is not what was asked for.",
    mend="look for fallbacks in the router in front of it, and for a second server on this port",
    checks=(counters, headers, strange_name),
    tokens=REQUESTS * TOKENS + 2,
    gate=(counters, headers),
    gate_tokens=REQUESTS * TOKENS + 1,
)
