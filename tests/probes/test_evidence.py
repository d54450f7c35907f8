"""What is kept of each exchange: enough to ask the same again, and no key."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import msgspec
import pytest

from lying_engine import KEY, MODEL, Server, lying_engine
from probing import prove
from stoker.flows.verify import choose_probes, verify
from stoker.probes.kit.evidence import KEPT_CHARACTERS, cut, keep, render_curl
from stoker.probes.kit.wire import Call, Reply
from stoker.records import Exchange, Target, Verdict, Verification

LEFT_OUT = len(" [... 123456 characters left out ...] ")


@pytest.fixture(scope="module")
def engine() -> Iterator[Server]:
    """An honest engine."""
    with lying_engine() as server:
        yield server


@pytest.fixture(scope="module")
def view(engine: Server) -> Verification:
    """Everything about it."""
    return prove(engine.url, deep=True)


def exchanges(view: Verification) -> list[Exchange]:
    """Returns all exchanges."""
    return [one for probe in view.probes for check in probe.checks for one in check.exchanges]


def test_every_check_that_asked_keeps_what_it_asked(view: Verification) -> None:
    silent = {probe.name for probe in view.probes for check in probe.checks if not check.exchanges}
    assert silent == {"exposure"}, "it only opens connections where nobody listens"
    assert len(exchanges(view)) > 80


def test_no_key_is_in_a_report(view: Verification) -> None:
    assert KEY not in msgspec.json.encode(view).decode()
    assert "$STOKER_KEY" in msgspec.json.encode(view).decode()


def test_a_key_that_comes_back_is_hidden_before_the_text_is_cut() -> None:
    body = b"a" * (KEPT_CHARACTERS - 1000 - 4) + KEY.encode() + b"b" * 5000
    call = Call("POST", f"http://spark/v1?key={KEY}", {"authorization": f"Bearer {KEY}"}, b"{}", 1.0)
    reply = Reply(call, 200, {"set-cookie": "session=1", "x": KEY}, body, ((0.1, 9),), 0.2, "", False, False)  # type: ignore[arg-type]
    kept = keep(call, reply, (KEY, ""))
    assert KEY[:6] not in msgspec.json.encode(kept).decode()
    assert dict(kept.reply_headers) == {"set-cookie": "(left out)", "x": "$STOKER_KEY"}


def test_neither_key_is_in_a_report_even_where_a_server_says_it() -> None:
    engine_key = f"{KEY}-of-the-engine"
    with lying_engine("open", "any-name", model=f"{KEY} {engine_key}") as front, lying_engine("open") as engine:
        target = Target(f"{front.url}/v1", MODEL, KEY, engine_url=engine.url, engine_key=engine_key)
        view = verify(target, choose_probes((), (), deep=True), (), 60.0, lambda result: None)
    assert KEY not in msgspec.json.encode(view).decode()
    assert "it says that $STOKER_KEY $STOKER_KEY answered" in view.probes[0].checks[1].says


def test_long_texts_are_cut_and_say_so(view: Verification) -> None:
    assert max(len(one.body) for one in exchanges(view)) <= KEPT_CHARACTERS + LEFT_OUT
    assert any("characters left out" in one.body for one in exchanges(view)), "the over-long prompt"
    assert cut("short") == "short"


def test_curl_asks_the_same_again(engine: Server, view: Verification) -> None:
    check = view.probes[0].checks[0]
    line = render_curl(check.exchanges[0])
    # The line is made for a shell, so a shell has to read it.
    done = subprocess.run(
        ["sh", "-c", line], env={"STOKER_KEY": KEY, "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=30
    )
    assert done.stdout.startswith("HTTP/1.1 200 OK"), done.stdout + done.stderr
    assert f'"model": "{MODEL}"' in done.stdout
    assert "I am the honest engine" in done.stdout


def test_quotes_in_a_body_do_not_leave_the_line_for_curl() -> None:
    hostile = Exchange("POST", "http://h/v1/$(id)", (("x", "`id` \"'"),), "it's \"; rm -rf / #", None, (), "", 0.1)
    done = subprocess.run(
        ["sh", "-c", f"curl() {{ printf '%s\\n' \"$@\"; }}; {render_curl(hostile)}"],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.stdout.splitlines() == [
        "-sS",
        "-i",
        "-N",
        "http://h/v1/$(id)",
        "-H",
        "x: `id` \"'",
        "--data-raw",
        "it's \"; rm -rf / #",
    ]


def test_a_failed_check_shows_the_answer_that_failed() -> None:
    with lying_engine("says-another-model") as engine:
        view = prove(engine.url, "answers")
    [check] = [one for one in view.probes[0].checks if one.verdict is Verdict.FAIL]
    assert '"model": "another"' in check.exchanges[0].reply
