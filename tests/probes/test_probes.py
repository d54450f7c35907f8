"""Each probe against an honest engine, and against one that lies in exactly the way which that probe is for."""

from __future__ import annotations

import pytest

from lying_engine import lying_engine
from probing import found, prove
from stoker.probes import names
from stoker.records import Verdict

# How it lies, and the check that has to find it, with a part of what that says.
LIES = [
    ("says-nothing", "answers: tokens", Verdict.FAIL, "without a single token"),
    ("says-another-model", "answers: named", Verdict.FAIL, "it says that another answered"),
    ("logprobs-above-zero", "answers: logprobs", Verdict.FAIL, "no logarithm of a probability"),
    ("logprobs-nan", "answers: logprobs", Verdict.FAIL, "it holds NaN"),
    ("never-the-same", "answers: same twice", Verdict.DEGRADED, "two greedy answers differ"),
    ("counts-nothing", "identity: counters", Verdict.FAIL, "0 requests of 3"),
    ("any-name", "identity: strange name", Verdict.DEGRADED, "which does not exist"),
    ("speaks-after-the-end", "streaming: order", Verdict.FAIL, "tokens after the finish reason"),
    ("no-done", "streaming: order", Verdict.FAIL, "without [DONE]"),
    ("buffers", "streaming: pace", Verdict.FAIL, "came together"),
    ("works-on", "streaming: abort", Verdict.FAIL, "had left"),
    ("no-usage", "streaming: usage", Verdict.DEGRADED, "no event brings it"),
    ("cuts-letters", "streaming: utf8", Verdict.FAIL, "cut in two"),
    ("calls-when-none", "tools: none", Verdict.FAIL, "tool_choice was none"),
    ("call-as-text", "tools: auto", Verdict.FAIL, "hands it on as text"),
    ("refuses-tools", "tools: auto", Verdict.NOT_OFFERED, "HTTP 400"),
    ("never-forced", "tools: required", Verdict.FAIL, "a call was required"),
    ("wrong-tool", "tools: one by name", Verdict.FAIL, "get_time was named"),
    ("bad-arguments", "tools: required", Verdict.FAIL, "not what the schema wants"),
    ("loses-deltas", "tools: streamed", Verdict.FAIL, "no JSON"),
    ("forgets-results", "tools: result", Verdict.DEGRADED, "violet fog"),
    ("responses-as-text", "tools: responses", Verdict.FAIL, "as text"),
    ("fallback-uncounted", "failover: tool choice", Verdict.FAIL, "answered by the other model"),
    ("fallback-header", "failover: tool choice", Verdict.FAIL, "http://other:1"),
    ("ignores-efforts", "reasoning: efforts", Verdict.DEGRADED, "low, medium is accepted and silently ignored"),
    ("thoughts-in-text", "reasoning: place", Verdict.FAIL, "part of the answer"),
    ("thoughts-uncounted", "reasoning: counted", Verdict.DEGRADED, "usage says 0"),
    ("wants-alternation", "roles: two users", Verdict.DEGRADED, "Alternating roles required"),
    ("breaks-on-developer", "roles: developer", Verdict.FAIL, "HTTP 500"),
    ("ignores-schema", "structured: schema", Verdict.FAIL, "silently ignored"),
    ("ignores-stop", "stop: whole", Verdict.FAIL, "was to stop it"),
    ("leaks-stop", "stop: streamed", Verdict.FAIL, "was to stop it"),
    ("ignores-seed", "seed: same", Verdict.DEGRADED, "one seed gave"),
    ("ignores-new-limit", "limits: max completion tokens", Verdict.FAIL, "tokens came"),
    ("truncates", "limits: over long", Verdict.FAIL, "answered with HTTP 200"),
    ("takes-anything", "limits: bad json", Verdict.FAIL, "HTTP 200 with an error"),
    ("open", "auth: without key", Verdict.FAIL, "everybody is answered"),
    ("takes-bare-keys", "auth: wrong place", Verdict.DEGRADED, "without `Bearer`"),
    ("open-beside", "auth: beside", Verdict.DEGRADED, "/tokenize answer"),
    ("everywhere", "exposure: endpoint", Verdict.DEGRADED, "with a key"),
    ("drops-crowds", "concurrency: planned", Verdict.FAIL, "were lost"),
    ("ignores-n", "n: two", Verdict.FAIL, "n is silently ignored"),
    ("ignores-bias", "logit-bias: forbidden", Verdict.FAIL, "logit_bias is silently ignored"),
    ("cuts-prompts", "long-context: beginning", Verdict.FAIL, "cut down in silence"),
    ("zero-vectors", "embeddings: vectors", Verdict.FAIL, "zeros alone"),
    ("unstable-vectors", "embeddings: same twice", Verdict.DEGRADED, "differ"),
    ("ignores-images", "vision: colour", Verdict.FAIL, "silently left out"),
]
HARMLESS = {Verdict.PASS, Verdict.NOT_OFFERED}


def is_bad(one: tuple[Verdict, str]) -> bool:
    """Tells whether a check found something wrong, and not only that nothing answers."""
    return one[0] not in HARMLESS and "not asked" not in one[1]


def test_an_honest_engine_passes_every_probe() -> None:
    with lying_engine() as engine:
        view = prove(engine.url, deep=True)
    assert {name: one for name, one in found(view).items() if one[0] is not Verdict.PASS} == {}
    assert (view.verdict, view.engine, view.in_time) == (Verdict.PASS, "vllm", True)
    assert [probe.name for probe in view.probes] == names()


@pytest.mark.parametrize(("lie", "where", "verdict", "says"), LIES, ids=[lie[0] for lie in LIES])
def test_a_lie_is_found_by_its_probe_and_by_no_other(lie: str, where: str, verdict: Verdict, says: str) -> None:
    with lying_engine(lie) as engine:
        checks = found(prove(engine.url, deep=True))
    assert checks[where][0] is verdict, checks[where]
    assert says in checks[where][1]
    assert {
        name: one for name, one in checks.items() if is_bad(one) and name.partition(":")[0] != where.partition(":")[0]
    } == {}
