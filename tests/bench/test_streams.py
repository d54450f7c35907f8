"""What is read from a stream: its events, whatever their line endings, and how many tokens came with each write."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from stoker.bench.counting import Counted, count_tokens
from stoker.bench.events import NoStream, read_stream
from stoker.bench.exchange import Piece


def event(text: str | None = None, finish: str | None = None, **more: Any) -> bytes:
    """Returns a chunk of a chat."""
    delta = {} if text is None else {"content": text}
    ids = {"token_ids": more.pop("ids")} if "ids" in more else {}
    choice = {"index": 0, "delta": delta, "finish_reason": finish, **ids}
    return b"data: " + json.dumps({"choices": [choice], **more}).encode() + b"\n\n"


def usage(completion: int, prompt: int = 5) -> dict[str, Any]:
    """Returns usage as an event carries it."""
    return {"usage": {"prompt_tokens": prompt, "completion_tokens": completion}}


DONE = b"data: [DONE]\n\n"


def counted(*pieces: bytes, asked: int = 100, tokenizer: Callable[[str], int] | None = None) -> Counted:
    """Returns the tokens of pieces that came a second apart."""
    stream = read_stream([Piece(float(place), data) for place, data in enumerate(pieces)])
    found = count_tokens(stream, asked, tokenizer)
    assert found is not None
    return found


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
def test_any_line_ending_will_do(ending: bytes) -> None:
    data = (b": hello\n\nevent: message\n" + event("a") + event("b", "length") + DONE).replace(b"\n", ending)
    stream = read_stream([Piece(1.0, data)])
    assert ([one.text for one in stream.texts], stream.finish, stream.is_done) == (["a", "b"], "length", True)


def test_an_event_cut_anywhere_is_whole_when_its_line_is() -> None:
    data = event("ä") + DONE
    for place in range(1, len(data)):
        stream = read_stream([Piece(1.0, data[:place]), Piece(2.0, data[place:])])
        assert [one.text for one in stream.texts] == ["ä"]
        assert stream.texts[0].at_s == (1.0 if place >= len(event("ä")) - 1 else 2.0)


def test_an_event_over_several_lines_is_joined() -> None:
    stream = read_stream([Piece(1.0, b'data: {"choices": [{"index": 0,\ndata: "delta": {"content": "a"}}]}\n\n')])
    assert [one.text for one in stream.texts] == ["a"]


def test_what_is_no_chat_is_told_in_words() -> None:
    with pytest.raises(NoStream, match="none of a chat"):
        read_stream([Piece(1.0, b"data: <html>\n\n")])


def test_the_running_count_of_usage_splits_bursts() -> None:
    found = counted(event("abcd", **usage(4)), event("efg", **usage(7)), event(None, "length", **usage(7)))
    assert [one.tokens for one in found.writes] == [4, 3]
    assert (found.tokens, found.counted_by, found.is_split_known) == (7, "usage", True)


def test_token_ids_split_bursts_where_usage_comes_at_the_end() -> None:
    found = counted(event("abcd", ids=[1, 2, 3, 4]), event("ef", ids=[5, 6]), event(None, "stop", **usage(6)))
    assert [one.tokens for one in found.writes] == [4, 2]


def test_llama_cpps_timings_are_a_running_count() -> None:
    found = counted(event("ab", timings={"predicted_n": 2}), event("c", timings={"predicted_n": 3}), DONE)
    assert ([one.tokens for one in found.writes], found.counted_by) == ([2, 1], "usage")


def test_as_many_chunks_as_tokens_are_one_each() -> None:
    found = counted(event("a"), event("long word"), event(None, "length", **usage(2)))
    assert ([one.tokens for one in found.writes], found.is_split_known) == ([1, 1], True)


def test_chunks_of_one_read_are_one_write() -> None:
    found = counted(event("a") + event("b"), event("c"), event(None, "length", **usage(3)))
    assert [(one.tokens, one.chunks) for one in found.writes] == [(2, 2), (1, 1)]


def test_without_a_split_the_text_is_shared_out_and_that_is_said() -> None:
    found = counted(event("abcd"), event("ef"), event(None, "length", **usage(12)))
    assert ([one.tokens for one in found.writes], found.is_split_known) == ([8, 4], False)
    by_tokenizer = counted(event("abcd"), event("ef"), event(None, "length", **usage(12)), tokenizer=lambda text: 3)
    assert [one.tokens for one in by_tokenizer.writes] == [3, 9]


def test_an_end_by_length_tells_the_count_where_usage_is_missing() -> None:
    found = counted(event("abc"), event("def", "length"), DONE, asked=6)
    assert (found.tokens, found.counted_by) == (6, "length")
    assert counted(event("abc"), event("def", "stop"), DONE, asked=6).counted_by == "chunks"
    assert counted(event("abc"), event("de", "stop"), DONE, tokenizer=len).counted_by == "tokenize"


@pytest.mark.parametrize(
    ("told", "ids", "doubt"),
    [
        (2, None, "usage says 2 tokens, and 5 chunks with text came"), (500, None, "at most 100 were asked for"),
        (7, 1, "usage says 7 tokens, and 5 token ids came"),
    ],
)  # fmt: skip
def test_usage_that_contradicts_what_came_is_doubted_and_not_used(told: int, ids: int | None, doubt: str) -> None:
    more: dict[str, Any] = {} if ids is None else {"ids": [ids]}
    found = counted(*(event("a", **more) for _ in range(5)), event(None, "stop", **usage(told)))
    assert found.tokens == 5
    assert doubt in found.doubts[0]


def test_a_stream_without_text_has_no_tokens() -> None:
    assert count_tokens(read_stream([Piece(1.0, event(None, "stop") + DONE)]), 5) is None


def test_thinking_and_calls_of_tools_are_tokens_too() -> None:
    deltas = ({"reasoning_content": "a"}, {"reasoning": "b"}, {"tool_calls": [{"index": 0, "function": {"name": "f"}}]})
    data = b"".join(b"data: " + json.dumps({"choices": [{"index": 0, "delta": one}]}).encode() + b"\n\n" for one in deltas)
    assert len(read_stream([Piece(1.0, data)]).texts) == 3
