"""Each probe against an honest engine, and against one that lies in exactly the way which that probe is for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lying_engine import KEY, MODEL, lying_engine
from probing import found, prove, prove_target
from stoker.probes import find, names
from stoker.probes.kit.leaving import LONG_TOKENS
from stoker.probes.kit.probe import name_of
from stoker.records import Target, Verdict

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
    ("works-on-fast", "streaming: abort", Verdict.FAIL, "for a client that had left"),
    ("works-on-quickly", "streaming: abort", Verdict.UNKNOWN, "too quick to tell, and its context has no room"),
    ("breaks-when-left", "streaming: abort", Verdict.UNKNOWN, "answers nothing since a client left"),
    ("asked-by-others", "streaming: abort", Verdict.UNKNOWN, "busy with what others ask"),
    ("no-usage", "streaming: usage", Verdict.DEGRADED, "no event brings it"),
    ("cuts-letters", "streaming: utf8", Verdict.FAIL, "cut in two"),
    ("calls-when-none", "tools: none", Verdict.FAIL, "tool_choice was none"),
    ("call-as-text", "tools: auto", Verdict.FAIL, "hands it on as text"),
    ("refuses-tools", "tools: auto", Verdict.NOT_OFFERED, "HTTP 400"),
    ("never-forced", "tools: required", Verdict.FAIL, "a call was required"),
    ("wrong-tool", "tools: one by name", Verdict.FAIL, "get_time was named"),
    ("bad-arguments", "tools: required", Verdict.FAIL, "not what the schema wants"),
    ("loses-deltas", "tools: streamed", Verdict.FAIL, "no JSON"),
    ("streams-another-call", "tools: streamed", Verdict.FAIL, 'streamed it calls get_weather({"city": "Linz"}), otherwise'),
    ("calls-otherwise-each-time", "tools: streamed", Verdict.UNKNOWN, "its greedy answers differ"),
    ("cuts-calls", "tools: auto", Verdict.UNKNOWN, "used up before the call was whole"),
    ("cuts-calls", "tools: streamed", Verdict.UNKNOWN, "used up before the call was whole"),
    ("forgets-results", "tools: result", Verdict.DEGRADED, "violet fog"),
    ("responses-as-text", "tools: responses", Verdict.FAIL, "as text"),
    ("fallback-uncounted", "failover: tool choice", Verdict.FAIL, "answered by the other model"),
    ("fallback-header", "failover: tool choice", Verdict.FAIL, "http://other:1"),
    ("ignores-efforts", "reasoning: efforts", Verdict.DEGRADED, "low, medium is accepted and silently ignored"),
    ("thoughts-in-text", "reasoning: place", Verdict.FAIL, "part of the answer"),
    ("thoughts-uncounted", "reasoning: counted", Verdict.DEGRADED, "usage says 0"),
    ("counts-thoughts-beside", "reasoning: counted", Verdict.DEGRADED, "beside completion_tokens_details"),
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
    ("open-beside", "auth: beside", Verdict.DEGRADED, "/tokenize, /props answer"),
    ("everywhere", "exposure: endpoint", Verdict.DEGRADED, "with a key"),
    ("drops-crowds", "concurrency: planned", Verdict.FAIL, "were lost"),
    ("ignores-n", "n: two", Verdict.FAIL, "n is silently ignored"),
    ("ignores-bias", "logit-bias: forbidden", Verdict.FAIL, "logit_bias is silently ignored"),
    ("cuts-prompts", "long-context: beginning", Verdict.FAIL, "cut down in silence"),
    ("zero-vectors", "embeddings: vectors", Verdict.FAIL, "zeros alone"),
    ("unstable-vectors", "embeddings: same twice", Verdict.DEGRADED, "differ"),
    ("ignores-images", "vision: colour", Verdict.FAIL, "silently left out"),
    ("fallback-always", "identity: headers", Verdict.FAIL, "http://other:1"),
    ("streams-otherwise", "streaming: same as whole", Verdict.DEGRADED, "greedy answers differ"),
    ("same-ids", "tools: parallel", Verdict.FAIL, "the same id"),
    ("fallback-long", "failover: over long", Verdict.FAIL, "answered by the other model"),
    ("fallback-parameter", "failover: bad parameter", Verdict.FAIL, "answered by the other model"),
    ("fallback-error", "failover: server error", Verdict.FAIL, "answered by the other model"),
    ("fallback-timeout", "failover: time out", Verdict.FAIL, "answered by the other model"),
    ("cut-thoughts-are-whole", "reasoning: too few tokens", Verdict.FAIL, "were not enough"),
    ("thinks-only", "reasoning: enough tokens", Verdict.FAIL, "without an answer"),
    ("refuses-system", "roles: system first", Verdict.DEGRADED, "refused"),
    ("refuses-late-system", "roles: late system", Verdict.DEGRADED, "refused"),
    ("refuses-parts", "roles: parts", Verdict.DEGRADED, "refused"),
    ("refuses-tool-turns", "roles: tool turn", Verdict.DEGRADED, "refused"),
    ("ignores-schema-streamed", "structured: schema streamed", Verdict.FAIL, "silently ignored"),
    ("ignores-json-object", "structured: json object", Verdict.FAIL, "silently ignored"),
    ("calls-it-whole", "limits: max tokens", Verdict.FAIL, "clients take it for whole"),
    ("takes-any-type", "limits: bad type", Verdict.FAIL, "answered with HTTP 200"),
    ("takes-any-key", "auth: wrong key", Verdict.FAIL, "taken for a right one"),
    ("lists-for-all", "auth: models list", Verdict.DEGRADED, "tells everybody"),
    ("drops-larger-crowds", "concurrency: over plan", Verdict.FAIL, "were lost"),
    ("overlooks-middle", "long-context: middle", Verdict.DEGRADED, "not seen at 50%"),
    ("overlooks-end", "long-context: end", Verdict.DEGRADED, "not seen at 95%"),
    ("everywhere-behind-a-router", "exposure: engine", Verdict.FAIL, "without a key"),
]
# Lies that the engine tells behind a router that is honest.
BEHIND = {"everywhere-behind-a-router": ("everywhere", "open"), "open-behind-a-router": ("open",)}
# The first lie of each probe: asked for everything, so that it shows which other probes see it.
FIRST = {
    where.partition(":")[0]: (lie, where) for lie, where, verdict, _ in reversed(LIES) if verdict is not Verdict.NOT_OFFERED
}
HARMLESS = {Verdict.PASS, Verdict.NOT_OFFERED}


def is_bad(one: tuple[Verdict, str]) -> bool:
    """Tells whether a check found something wrong, and not only that nothing answers."""
    return one[0] not in HARMLESS and "not asked" not in one[1]


@contextmanager
def lying_target(lie: str) -> Iterator[Target]:
    """Runs what tells a lie: an engine that is asked itself, or one behind a router."""
    if lie in BEHIND:
        with lying_engine() as front, lying_engine(*BEHIND[lie]) as engine:
            yield Target(f"{front.url}/v1", MODEL, KEY, engine_url=engine.url)
    else:
        with lying_engine(lie) as engine:
            yield Target(f"{engine.url}/v1", MODEL, KEY)


def test_an_honest_engine_passes_every_probe() -> None:
    with lying_engine() as engine:
        view = prove(engine.url, deep=True)
    assert {name: one for name, one in found(view).items() if one[0] is not Verdict.PASS} == {}
    assert (view.verdict, view.engine, view.in_time) == (Verdict.PASS, "vllm", True)
    assert [probe.name for probe in view.probes] == names()


@pytest.mark.parametrize(("lie", "where", "verdict", "says"), LIES, ids=[lie[0] for lie in LIES])
def test_a_lie_is_found_by_its_check(lie: str, where: str, verdict: Verdict, says: str) -> None:
    with lying_target(lie) as target:
        checks = found(prove_target(target, where.partition(":")[0]))
    assert checks[where][0] is verdict, checks[where]
    assert says in checks[where][1]


@pytest.mark.parametrize(("lie", "where"), FIRST.values(), ids=FIRST)
def test_a_lie_is_found_by_no_other_probe(lie: str, where: str) -> None:
    with lying_target(lie) as target:
        checks = found(prove_target(target, deep=True))
    assert is_bad(checks[where])
    others = {name: one for name, one in checks.items() if name.partition(":")[0] != where.partition(":")[0]}
    assert {name: one for name, one in others.items() if is_bad(one)} == {}


def test_each_check_has_a_lie_that_it_finds() -> None:
    checks = {f"{name}: {name_of(check)}" for name in names() for check in find(name).checks}
    assert checks == {where for _, where, _, _ in LIES}
    assert FIRST.keys() == set(names()), "and each probe one that no other finds"


@pytest.mark.parametrize(("lies", "verdict"), [((), Verdict.PASS), (("works-on",), Verdict.FAIL)], ids=["stops", "works-on"])
def test_a_request_before_that_has_not_ended_yet_is_not_taken_for_rest(lies: tuple[str, ...], verdict: Verdict) -> None:
    with lying_engine("ends-late", *lies) as engine:
        checks = found(prove(engine.url, "streaming"))
    assert checks["streaming: abort"][0] is verdict, checks["streaming: abort"]


def test_an_engine_that_is_done_before_it_would_notice_is_left_with_more_to_do() -> None:
    with lying_engine("notices-late") as engine:
        verdict, says = found(prove(engine.url, "streaming"))["streaming: abort"]
    match = re.fullmatch(r"it stopped after (\d+) of (\d+) tokens, once the client had left", says)
    assert verdict is Verdict.PASS and match is not None, says
    assert LONG_TOKENS < int(match[1]) < int(match[2])


@pytest.mark.parametrize(
    ("lies", "says"),
    [
        (("notices-late", "refuses-many"), "too quick to tell, and asked for 1792 it gave none: the stream"),
        (("works-on", "clamps"), "the answer ends after 300 of 400 tokens by itself"),
    ],
    ids=["limited", "clamped"],
)
def test_what_a_servers_own_limit_hides_is_told_as_unknown(lies: tuple[str, ...], says: str) -> None:
    with lying_engine(*lies) as engine:
        checks = found(prove(engine.url, "streaming"))
    assert checks["streaming: abort"][0] is Verdict.UNKNOWN and says in checks["streaming: abort"][1], checks


def test_ids_without_a_prefix_are_no_other_form() -> None:
    with lying_engine("bare-ids") as engine:
        assert {one[0] for one in found(prove(engine.url, "failover")).values()} == {Verdict.PASS}


def test_an_engine_without_a_key_behind_a_gateway_with_one_is_told_as_such() -> None:
    with lying_target("open-behind-a-router") as target:
        checks = found(prove_target(target, "auth"))
    assert checks["auth: beside"] == (
        Verdict.DEGRADED,
        "/tokenize, /props answer without a key: the engine asks for none",
    )


def test_an_engine_behind_a_router_is_looked_at_beside_the_router() -> None:
    with lying_target("everywhere-behind-a-router") as target:
        checks = found(prove_target(target, "exposure"))
    assert (checks["exposure: endpoint"][0], checks["exposure: engine"][0]) == (Verdict.PASS, Verdict.FAIL)
