"""Whether the key is asked for, everywhere, and only the right one is taken."""

from __future__ import annotations

from stoker.probes.kit.asker import Asker
from stoker.probes.kit.findings import Finding, degraded, failed, not_offered, passed, unknown
from stoker.probes.kit.probe import Probe
from stoker.probes.kit.reply import OK
from stoker.probes.kit.wire import Reply

WRONG = "sk-stoker-wrong-key"
OPEN = "it asks for no key: whoever reaches it is answered"
MEND = "start the engine with a key (vLLM: VLLM_API_KEY, llama.cpp: LLAMA_API_KEY), or put the gateway in front of it"
# vLLM guards /v1 alone (0.32): these generate, or tell what is served, too.
BESIDE = ("/tokenize", "/invocations", "/completion", "/generate")
BESIDE_READ = ("/props", "/slots")  # llama.cpp's, which also tell what others ask
REFUSALS = (401, 403)


async def without_key(ask: Asker) -> Finding:
    """A request without a key is refused."""
    reply = await _chat(ask, {})
    if reply.status == OK:
        return (
            failed("a key is configured, and without it everybody is answered", MEND)
            if ask.target.key
            else not_offered(OPEN, MEND)
        )
    return _refused(reply, "no key")


async def wrong_key(ask: Asker) -> Finding:
    """A wrong key is refused."""
    reply = await _chat(ask, {"authorization": f"Bearer {WRONG}"})
    if reply.status == OK:
        return failed("a wrong key is taken for a right one", MEND) if ask.target.key else not_offered(OPEN, MEND)
    return _refused(reply, "a wrong key")


async def wrong_place(ask: Asker) -> Finding:
    """The right key where no client puts it is refused."""
    if ask.target.key is None:
        return not_offered(OPEN)
    reply = await _chat(ask, {"authorization": ask.target.key})
    if reply.status == OK:
        return degraded("the key is taken without `Bearer`: what else it takes for a key, nobody knows")
    return _refused(reply, "a key without `Bearer`")


async def models_list(ask: Asker) -> Finding:
    """The list of models is not for everybody either."""
    if ask.target.key is None:
        return not_offered(OPEN)
    reply = await ask.send("/models", method="GET", headers={})
    if reply.status == OK:
        return degraded("/v1/models tells everybody what is served", "no harm where that is no secret")
    return _refused(reply, "/v1/models without a key")


async def beside(ask: Asker) -> Finding:
    """What the engine offers beside `/v1` wants the key too."""
    if ask.target.key is None:
        return not_offered(OPEN)
    engine = ask.engine() or ask
    answered = []
    body = {"model": engine.target.model, "prompt": "hi", "content": "hi", "max_tokens": 1}
    for path in (*BESIDE, *BESIDE_READ):
        reply = await engine.send_beside(path, None if path in BESIDE_READ else body)
        answered += [path] if reply.status == OK and not reply.problem else []
    if answered:
        is_open = (await _chat(engine, {})).status == OK
        return degraded(
            f"{', '.join(answered)} answer without a key: the engine {'asks for none' if is_open else 'guards /v1 alone'}",
            "let clients reach the gateway and not the engine; bind the engine to 127.0.0.1",
        )
    return passed("nothing beside /v1 answers without a key")


async def _chat(ask: Asker, headers: dict[str, str]) -> Reply:
    return await ask.send("/chat/completions", ask.body("Say hello.", 1, {}), headers=headers)


def _refused(reply: Reply, what: str) -> Finding:
    if reply.status is None or reply.problem:
        return unknown(f"{what}: {reply.problem}")
    if reply.status in REFUSALS:
        return passed(f"{what} is refused with HTTP {reply.status}")
    return degraded(
        f"{what} is refused with HTTP {reply.status}, where clients look for 401", "clients will not ask for another key"
    )


PROBE = Probe(
    name="auth",
    sends="A question without a key, with a wrong one, the right one in the wrong place; what engines offer beside /v1.",
    expects="HTTP 401 to each of them.",
    means="Whoever reaches the port uses the model, and reads along in what is left open.",
    mend=MEND,
    checks=(without_key, wrong_key, wrong_place, models_list, beside),
    tokens=5,
)
