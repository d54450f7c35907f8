"""Whatever an endpoint does, it gets a verdict with evidence, within the budget."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from bad_endpoint import (
    EVENT,
    JSON_HEAD,
    STREAM_HEAD,
    Play,
    bad_endpoint,
    chunk,
    drips,
    floods,
    hangs,
    hangs_after_head,
    make_certificate,
    says,
    whole,
)
from home import Home
from lying_engine import lying_engine
from probing import found, prove
from stoker.records import Verdict, Verification

BUDGET_S, GRACE_S = 1.5, 1.0
PAGE = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 15\r\n\r\n<html>hi</html>"
AWAY = b"HTTP/1.1 301 Moved\r\nlocation: https://elsewhere/v1\r\ncontent-length: 0\r\n\r\n"
LONG_LINE = b"data: " + b"a" * 300_000 + b"\n\n"

WHOLE = {
    "a web page": (says(PAGE), "a web page"),
    "a redirect": (says(AWAY), "redirects (HTTP 301) to https://elsewhere/v1"),
    "broken JSON": (says(whole(b'{"choices": [')), "no JSON object"),
    "a list": (says(whole(b"[]")), "no JSON object"),
    "no letters": (says(whole(b"\xff\xfe{}")), "no JSON object"),
    "another shape": (says(whole(b'{"choices": [{"message": {"content": 7}}]}')), "$.choices[0].message.content"),
    "no choice": (says(whole(b'{"choices": []}')), "no choice with a message"),
    "an error as an answer": (says(whole(b'{"error": {"message": "busy"}}')), "HTTP 200 with an error: busy"),
    "an empty reply": (says(whole(b"")), "no JSON object"),
    "half a reply": (says(JSON_HEAD + b"content-length: 99\r\n\r\n{"), "closed the connection before its answer was over"),
    "nothing": (says(), "closed the connection before its answer was over"),
    "another protocol": (says(b"SSH-2.0-OpenSSH_9.9\r\n\r\n"), "no HTTP that clients understand"),
    "a head without an end": (says(b"HTTP/1.1 200 OK\r\nx: " + b"a" * 300_000), "no HTTP that clients understand"),
    "an endless line": (floods, "is over 4 MiB"),
}  # fmt: skip
STREAMS = {
    "cut in the middle": (says(STREAM_HEAD + chunk(EVENT)), "closed the connection before its answer was over"),
    "a gigantic line": (says(STREAM_HEAD + chunk(LONG_LINE) + b"0\r\n\r\n"), "bytes long"),
    "broken JSON": (says(STREAM_HEAD + chunk(b"data: {\n\n") + b"0\r\n\r\n"), "no JSON object"),
    "no UTF-8": (says(STREAM_HEAD + chunk(b"data: \xff\n\n") + b"0\r\n\r\n"), "no UTF-8"),
    "no events": (says(STREAM_HEAD + b"0\r\n\r\n"), "held no event"),
    "prose": (says(STREAM_HEAD + chunk(b"Hello!\n") + b"0\r\n\r\n"), "is no event"),
    "an error": (says(STREAM_HEAD + chunk(b'data: {"error": {"message": "CUDA"}}\n\n') + b"0\r\n\r\n"), "CUDA"),
}  # fmt: skip


def first(view: Verification) -> tuple[Verdict, str]:
    """Returns what the first check found; fails where its evidence is missing."""
    check = view.probes[0].checks[0]
    assert check.exchanges and check.exchanges[0].url.endswith("/chat/completions")
    assert view.took_s < BUDGET_S + GRACE_S
    return check.verdict, check.says


@pytest.mark.parametrize(("play", "part"), WHOLE.values(), ids=WHOLE)
def test_what_is_no_answer_is_a_failure_that_says_so(play: Play, part: str) -> None:
    with bad_endpoint(play) as url:
        view = prove(url, budget_s=BUDGET_S)
    verdict, said = first(view)
    assert (verdict, part in said) == (Verdict.FAIL, True), said
    rest = {one for name, one in found(view).items() if name != "answers: tokens"}
    assert rest == {(Verdict.UNKNOWN, "not asked, since nothing answers")}


@pytest.mark.parametrize(("play", "part"), STREAMS.values(), ids=STREAMS)
def test_what_is_no_stream_is_a_failure_that_says_so(play: Play, part: str) -> None:
    with bad_endpoint(play) as url:
        verdict, said = first(prove(url, "streaming", budget_s=BUDGET_S))
    assert (verdict, part in said) == (Verdict.FAIL, True), said


@pytest.mark.parametrize("play", [hangs, hangs_after_head, drips])
def test_what_never_ends_is_left_when_the_time_is_over(play: Play) -> None:
    with bad_endpoint(play) as url:
        view = prove(url, budget_s=BUDGET_S)
    verdict, said = first(view)
    assert (verdict, view.in_time) == (Verdict.UNKNOWN, False)
    assert "the time was over" in said
    assert (
        "after" in view.probes[0].checks[0].exchanges[0].problem or "within" in view.probes[0].checks[0].exchanges[0].problem
    )


def test_nobody_there_is_a_failure_and_not_a_fault_of_ours() -> None:
    verdict, said = first(prove("http://127.0.0.1:9", budget_s=BUDGET_S))
    assert verdict is Verdict.FAIL
    assert "nobody answers there" in said


def test_a_self_signed_certificate_is_a_failure_until_it_is_trusted(home: Home, tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path)
    with bad_endpoint(says(PAGE), certificate) as url:
        words = ("verify", "--url", url, "--model", "m", "--probe", "answers")
        refused = home.run(*words, code=1).stdout
        home.environment["SSL_CERT_FILE"] = str(tmp_path / "certificate.pem")
        trusted = home.run(*words, code=1).stdout
    assert "its certificate is not trusted (self-signed certificate)" in refused
    assert "SSL_CERT_FILE=ca.pem" in refused
    assert "a web page" in trusted


def test_the_clients_own_proxy_is_not_used(home: Home) -> None:
    home.environment |= {"http_proxy": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
    with lying_engine("open") as engine:
        home.run("verify", "--url", engine.url, "--model", "honest", "--probe", "answers")
    assert os.environ.get("http_proxy") != "http://127.0.0.1:9"


def test_a_request_has_its_own_limit_within_a_long_budget() -> None:
    begun = time.monotonic()
    with bad_endpoint(hangs) as url:
        view = prove(url, "limits", budget_s=BUDGET_S)
    assert time.monotonic() - begun < BUDGET_S + GRACE_S
    assert {verdict for verdict, _ in found(view).values()} == {Verdict.UNKNOWN}
