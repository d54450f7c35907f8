"""The protocol's lines: whatever a client sends, the next question is answered, and nothing ends in a traceback."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import request, say_lines
from home import Home
from stoker.mcp.wire import MOST_BYTES, Asked, RpcError, read_message

CALL = {"name": "explain_setting", "arguments": {"engine": "vllm", "setting": "--max-num-seqs"}}


def test_bad_lines_are_refused_one_by_one_and_the_next_is_answered(home: Home) -> None:
    lines = [
        b"rubbish\n", b"\n", b"[]\n", b'"text"\n', b"\xff\xfe\n", b"[" * 10_000 + b"\n", b'{"jsonrpc": "2.0", "id": 1}\n',
        b'{"jsonrpc": "1.0", "id": 2, "method": "ping"}\n', b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}\n',
        b'{"jsonrpc": "2.0", "id": 3, "method": 7}\n', b'{"jsonrpc": "2.0", "id": 4, "method": "ping", "params": []}\n',
        b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n', request(9, "ping"),
    ]  # fmt: skip
    answers, said = say_lines(home, lines)
    assert answers[9]["result"] == {}
    assert answers[None]["error"]["code"] in (-32700, -32600)
    assert "Traceback" not in said


def test_a_line_that_is_too_long_is_left_out_and_costs_no_memory(home: Home) -> None:
    long = b'{"jsonrpc": "2.0", "id": 1, "method": "' + b"x" * (MOST_BYTES * 3) + b'"}\n'
    answers, _ = say_lines(home, [long, request(2, "ping")])
    assert "at most 4 MiB" in answers[None]["error"]["message"]
    assert answers[2]["result"] == {}


def test_a_last_line_without_an_end_is_answered_too(home: Home) -> None:
    answers, _ = say_lines(home, [request("last", "ping").rstrip()])
    assert answers["last"]["result"] == {}


def test_each_of_many_questions_at_once_gets_its_own_answer(home: Home) -> None:
    answers, _ = say_lines(home, [request(number, "tools/call", **CALL) for number in range(20)])
    assert set(answers) == set(range(20))
    assert all("--max-num-seqs" in answers[number]["result"]["content"][0]["text"] for number in range(20))


def test_an_agent_that_asks_in_a_circle_is_told_to_wait(home: Home) -> None:
    answers, _ = say_lines(home, [request(number, "tools/call", **CALL) for number in range(200)])
    assert len(answers) == 200  # each is answered, if only by a refusal
    refused = [one["result"]["content"][0]["text"] for one in answers.values() if one.get("result", {}).get("isError")]
    waiting = [one["error"]["message"] for one in answers.values() if "error" in one]
    assert refused or waiting
    assert all("too many calls" in text and "wait" in text for text in refused)
    assert all("questions wait already" in text for text in waiting)


@pytest.mark.parametrize(
    ("method", "params", "says"),
    [
        ("tools/call", {"name": "start_service", "arguments": {"service": "demo"}}, "there is no tool start_service"),
        ("tools/call", {"name": "diagnose_servce"}, "did you mean `diagnose_service`?"),
        ("tools/call", {"name": ["a"]}, "there is no tool"),
        ("tools/call", {}, "there is no tool"),
        ("resources/read", {"uri": "file:///etc/passwd"}, "there is no resource"),
        ("resources/read", {"uri": "stoker://rules/../../etc/passwd"}, "there is no rule"),
        ("resources/read", {"uri": "stoker://plans/nobody"}, "no plan of `nobody` is kept"),
        ("resources/read", {"uri": "stoker://reports/bench/x"}, "is no run"),
        ("resources/read", {"uri": "stoker://reports/verify/nobody"}, "nothing is kept of nobody"),
        ("resources/read", {"uri": 7}, "wants a `uri`"),
        ("prompts/get", {"name": "nope"}, "there is no prompt"),
        ("prompts/get", {"name": "it-got-slow", "arguments": {"service": "; rm -rf"}}, "is no service's name"),
        ("sampling/createMessage", {}, "there is no method"),
    ],
)
def test_what_is_not_there_is_refused_by_name(home: Home, method: str, params: dict[str, object], says: str) -> None:
    answers, said = say_lines(home, [request(1, method, **params)])
    assert says in answers[1]["error"]["message"]
    assert "Traceback" not in said


def test_an_unknown_version_of_a_handshake_gets_the_newest_that_is_spoken(home: Home) -> None:
    answers, _ = say_lines(home, [request(1, "initialize", protocolVersion="2099-01-01", capabilities={})])
    assert answers[1]["result"]["protocolVersion"] == "2025-11-25"


def test_an_unknown_version_without_a_handshake_is_told_which_are_spoken(home: Home) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2099-01-01", "io.modelcontextprotocol/clientCapabilities": {}}
    answers, _ = say_lines(home, [request(1, "tools/list", _meta=meta)])
    assert answers[1]["error"]["code"] == -32022
    assert answers[1]["error"]["data"] == {"supported": ["2026-07-28"], "requested": "2099-01-01"}


@given(st.binary(max_size=200))
def test_any_bytes_are_a_question_or_a_refusal(line: bytes) -> None:
    try:
        asked = read_message(line)
    except RpcError as error:
        assert error.code in (-32700, -32600)
    else:
        assert asked is None or isinstance(asked, Asked)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "result", "other"]), JSON))
def test_any_json_is_a_question_or_a_refusal(message: dict[str, object]) -> None:
    try:
        asked = read_message(json.dumps(message).encode())
    except RpcError as error:
        assert error.code == -32600
    else:
        assert asked is None or (asked.method == message["method"] and isinstance(asked.params, dict))
