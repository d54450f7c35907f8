"""Servers that fail: what went wrong is counted and shown, and is in no figure."""

from __future__ import annotations

from typing import Any

import pytest

from bad_endpoint import STREAM_HEAD, chunk
from bench_seen import run_bench
from bench_server import REFUSES_ALL, Play, bench_server, ending, event, hangs, refuses, sends, well
from stoker.errors import Refused, StokerError
from stoker.records import BenchLoad, CellResult, Target
from support import fails

WARM = (well, well)  # what is thrown away, of one request at once
NEW = 8


def one_cell(*plays: Play, always: Play = well, warm: int = 2, **asked: Any) -> CellResult:
    """Returns the cell of a server that answers so, after its warm-up."""
    with bench_server(*[well] * warm, *plays, always=always) as server:
        asked = {"runs": 1, "new": NEW, "prompts": (64,), **asked}
        return run_bench(Target(f"{server.url}/v1", "m"), **asked).cells[0]


BROKEN = [
    (refuses(500, "out of luck"), "HTTP 500: out of luck"),
    (refuses(429, "slow down", "retry-after: 1\r\n"), "HTTP 429: slow down"),
    (sends(STREAM_HEAD + event("a")), "it closed the connection before its answer was over"),
    (sends(), "it closed the connection before its answer was over"),
    (sends(b"SSH-2.0-OpenSSH_9\r\n\r\n"), "what it speaks is no HTTP that clients understand"),
    (sends(STREAM_HEAD + chunk(b'data: {"error": {"message": "out of memory"}}\n\n') + b"0\r\n\r\n"), "out of memory"),
    (sends(STREAM_HEAD + chunk(b"data: nothing\n\n") + b"0\r\n\r\n"), "none of a chat"),
    (sends(STREAM_HEAD + event("a") + b"0\r\n\r\n"), "its stream ended in the middle, without a word"),
    (sends(STREAM_HEAD + ending(0)), "it answered without a token"),
    (sends(STREAM_HEAD + b"0\r\n\r\n"), "its stream is empty"),
    (sends(b'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}'), "it answered whole and not as a stream"),
    (sends(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\nxx"), "it compressed its answer (gzip)"),
]  # fmt: skip


@pytest.mark.parametrize(("play", "says"), BROKEN, ids=[says for _, says in BROKEN])
def test_one_that_fails_is_counted_and_is_in_no_figure(play: Play, says: str) -> None:
    # A connection that was used before and closes without a byte is tried once more, as clients do, so two of them.
    cell = one_cell(play, play, runs=2, warm=1, always=well, budget_s=0.001)
    failed = [one for one in cell.errors if says in one[0]]
    assert failed, cell.errors
    assert cell.failed == failed[0][1]
    assert any(f"{cell.failed} of {cell.asked} requests failed" in one for one in cell.warnings)
    figure = next((one for one in cell.figures if one.name == "ttft_s"), None)
    assert len(figure.values if figure else ()) == (cell.asked or 0) - (cell.failed or 0)


def test_one_of_64_streams_that_fails_leaves_63() -> None:
    load = BenchLoad("closed", 64)
    cell = one_cell(*[well] * 64, refuses(503, "full"), loads=(load,), warm=0, budget_s=0.001)
    assert (cell.asked, cell.failed, cell.errors) == (64, 1, (("HTTP 503: full", 1),))
    assert len(next(one for one in cell.figures if one.name == "ttft_s").values) == 63


def test_a_stall_is_given_up_and_told() -> None:
    cell = one_cell(hangs, runs=2, warm=1, silence_s=0.3, budget_s=0.001)
    assert cell.errors == (("it fell silent for 0.3 s in the middle of its answer", 1),)


def test_an_endpoint_that_dies_half_way_ends_the_cell_with_what_was_seen() -> None:
    with bench_server(*[well] * 2) as server:

        def dies(body: Any, send: Any, over: Any) -> None:
            server.socket.close()
            server.over.set()
            raise ConnectionAbortedError

        server.plays += [well, dies]
        cell = run_bench(Target(f"{server.url}/v1", "m"), prompts=(64,), new=NEW, runs=9, budget_s=0.001).cells[0]
    assert cell.ended == "failed"
    assert (cell.asked or 0) - (cell.failed or 0) >= 1
    assert any("nobody answers there" in text or "closed the connection" in text for text, _ in cell.errors)


def test_usage_that_lies_is_a_warning_and_the_chunks_count() -> None:
    lies: Play = lambda body, send, over: send(STREAM_HEAD + b"".join(event("a") for _ in range(NEW)) + ending(3))  # noqa: E731
    cell = one_cell(always=lies, warm=0)
    assert cell.counted_by == ("length",)
    assert any("usage says 3 tokens, and 8 chunks with text came" in one for one in cell.warnings)
    assert {one.output_tokens for repeat in cell.repeats for one in repeat.requests} == {NEW}


def test_without_usage_the_end_tells_the_count() -> None:
    silent: Play = lambda body, send, over: send(STREAM_HEAD + b"".join(event("a") for _ in range(NEW)) + ending(None))  # noqa: E731
    cell = one_cell(always=silent, warm=0)
    assert (cell.counted_by, cell.failed) == (("length",), 0)


def test_answers_that_end_early_are_told() -> None:
    short: Play = lambda body, send, over: send(STREAM_HEAD + event("a") + event("b") + ending(2))  # noqa: E731
    cell = one_cell(always=short, warm=0)
    assert any("1 of 1 answers ended by themselves, after 2 of 8 tokens" in one for one in cell.warnings)


def test_what_came_out_of_a_cache_is_told() -> None:
    usage = {"prompt_tokens": 64, "completion_tokens": NEW, "prompt_tokens_details": {"cached_tokens": 48}}

    def cached(body: Any, send: Any, over: Any) -> None:
        data = b"".join(event("a") for _ in range(NEW)) + event("", finish="length", usage=usage)
        send(STREAM_HEAD + data + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")

    cell = one_cell(always=cached, warm=0)
    assert any("75 % of the prompts came out of a cache" in one for one in cell.warnings)


def test_a_wrong_key_is_told_before_anything_is_measured() -> None:
    with bench_server(always=REFUSES_ALL) as server, fails(Refused, "HTTP 401: no such key", "--key-file"):
        run_bench(Target(f"{server.url}/v1", "m"), prompts=(64,))


def test_nobody_there_is_told() -> None:
    with fails(StokerError, "nobody answers at http://127.0.0.1:1/v1"):
        run_bench(Target("http://127.0.0.1:1/v1", "m"))


def test_a_server_that_refuses_strange_words_is_asked_without() -> None:
    with bench_server(tokens=NEW) as server:
        strict = {"model", "messages", "max_tokens", "stream", "stream_options", "temperature"}
        answer = server.choose

        def choose(body: dict[str, Any]) -> Play:
            options = body.get("stream_options") or {}
            if body.keys() - strict or "continuous_usage_stats" in options:
                return refuses(400, "unknown parameter")
            return answer(body)

        server.choose = choose  # type: ignore[method-assign]
        cell = run_bench(Target(f"{server.url}/v1", "m"), prompts=(64,), new=NEW, runs=1).cells[0]
    assert cell.failed == 0
    assert all(body["stream_options"] == {"include_usage": True} for body in server.bodies)
