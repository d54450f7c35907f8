"""What is odd and allowed is not called broken, and what only looks well is not called well."""

from __future__ import annotations

import httpx
import pytest

from lying_engine import KEY, MODEL, lying_engine
from probing import found, prove
from stoker.flows.verify import choose_probes, verify
from stoker.probes.kit.context import no_over_long
from stoker.probes.kit.findings import Trouble
from stoker.probes.kit.reply import check_reply
from stoker.probes.kit.wire import Call, Reply
from stoker.records import Target, Verdict


@pytest.mark.parametrize(
    ("oddity", "where"),
    [
        ("first-is-slow", "streaming: pace"),
        ("speaks-of-filters-first", "streaming: order"),
        ("writes-calls-anew", "tools: streamed"),
        ("refuses-larger-crowds", "concurrency: over plan"),
    ],
)
def test_what_is_odd_and_allowed_passes(oddity: str, where: str) -> None:
    with lying_engine(oddity) as engine:
        checks = found(prove(engine.url, where.partition(":")[0]))
    assert checks[where][0] is Verdict.PASS, checks[where]


def test_efforts_that_all_do_the_same_are_found() -> None:
    with lying_engine("efforts-alike") as engine:
        verdict, said = found(prove(engine.url, "reasoning"))["reasoning: efforts"]
    assert verdict is Verdict.DEGRADED
    assert said.startswith("low, medium, high make it think, and word for word the same")


def test_a_crowd_within_the_plan_may_not_be_refused() -> None:
    with lying_engine("drops-crowds") as engine:
        assert found(prove(engine.url, "concurrency"))["concurrency: planned"][0] is Verdict.FAIL


@pytest.mark.parametrize("name", ["tools", "structured", "vision"])
def test_who_cannot_stop_thinking_is_not_called_deaf(name: str) -> None:
    with lying_engine("only-thinks") as engine:
        checks = found(prove(engine.url, name))
    assert not [one for one in checks.values() if one[0] in (Verdict.FAIL, Verdict.DEGRADED)]
    assert [said for verdict, said in checks.values() if verdict is Verdict.UNKNOWN and "were thought" in said]


def test_an_answer_that_ends_before_its_limit_was_not_cut_off() -> None:
    with lying_engine("is-short") as engine:
        verdict, said = found(prove(engine.url, "limits"))["limits: max tokens"]
    assert (verdict, said) == (Verdict.UNKNOWN, "it had said all after 1 tokens, so nothing was cut off")


def test_an_open_engine_is_found_although_it_calls_the_model_otherwise() -> None:
    with lying_engine() as front, lying_engine("everywhere", "open", model="org/honest") as engine:
        target = Target(f"{front.url}/v1", MODEL, KEY, engine_url=engine.url)
        checks = found(verify(target, choose_probes(("exposure",), (), deep=False), (), 30.0, lambda result: None))
    assert checks["exposure: engine"][0] is Verdict.FAIL
    assert "without a key" in checks["exposure: engine"][1]


def test_who_neither_answers_nor_asks_for_a_key_is_not_said_to_ask_for_one() -> None:
    with lying_engine("everywhere", "open") as engine:
        target = Target(f"{engine.url}/v1", "no-such-model", KEY)
        checks = found(verify(target, choose_probes(("exposure",), (), deep=False), (), 30.0, lambda result: None))
    verdict, said = checks["exposure: endpoint"]
    assert verdict is Verdict.DEGRADED
    assert said.endswith("whether without a key, its answer does not tell: HTTP 404")


@pytest.mark.parametrize(("status", "advice"), [(200, "is the path right?"), (502, "is the engine up")])
def test_a_page_of_a_proxy_is_told_from_a_web_site(status: int, advice: str) -> None:
    call = Call("POST", "http://spark/v1/chat/completions", {}, b"{}", 1.0)
    page = Reply(call, status, httpx.Headers(), b"<html>", ((0.1, 6),), 0.2, "", False, False)
    with pytest.raises(Trouble) as trouble:
        check_reply(page)
    assert advice in trouble.value.mend


def test_a_context_that_is_known_is_not_said_to_be_unknown() -> None:
    assert "nobody says" in no_over_long(None).says
    assert no_over_long(10**6).says.startswith("its context is 1000000 tokens")
    assert not no_over_long(10**6).mend
