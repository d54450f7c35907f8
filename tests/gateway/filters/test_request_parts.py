"""What filters make of requests, by value."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.errors import WrongUse
from stoker.gateway.chain import Chain
from stoker.gateway.filters import Refusal, find, names
from stoker.rules.load import find_rule
from support import fails

CHAT = "/v1/chat/completions"
Message = dict[str, Any]


def passed(said: str, body: dict[str, Any], path: str = CHAT) -> Any:
    """What the engine gets of a body."""
    return json.loads(Chain((said,)).request(path, json.dumps(body).encode()))


def merged(*messages: Message) -> Any:
    return passed("merge-turns", {"messages": list(messages)})["messages"]


def user(content: object, **more: object) -> Message:
    return {"role": "user", "content": content, **more}


@pytest.mark.parametrize("name", names())
def test_every_filter_says_what_it_does_and_its_example_works(name: str) -> None:
    found = find(name)
    assert found.name == name
    assert found.summary.endswith(".") and found.why.endswith(".")
    assert found.request or found.reply
    assert bool(found.takes) == ("=" in (found.example or name))
    assert [find_rule(rule).id for rule in found.rules] == list(found.rules)
    assert Chain((found.example or name,)).headers == [(b"x-stoker-filters", name.encode())]


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        (("merge-turn",), ["no filter called `merge-turn`", "did you mean `merge-turns`?"]),
        (("xyz",), ["no filter called `xyz`", "choose of: cap-tokens, merge-turns"]),
        (("",), ["no filter called ``"]),
        (("merge-turns=yes",), ["`merge-turns` takes no setting", "stoker rules --filters"]),
        (("cap-tokens",), ["`cap-tokens` needs a setting", "a number of tokens", "cap-tokens=4096"]),
        (("cap-tokens=0",), ["cannot work with `0`"]),
        (("cap-tokens=-1",), ["cannot work with `-1`"]),
        (("cap-tokens=4k",), ["cannot work with `4k`"]),
        (("reasoning-effort",), ["`reasoning-effort` needs a setting"]),
        (("reasoning-effort=low:,high",), ["cannot work with `low:,high`"]),
        (("reasoning-effort=low,low:high",), ["each once"]),
        (("reasoning-field=thoughts",), ["reasoning, reasoning_content or both"]),
        (("cap-tokens=1", "merge-turns", "cap-tokens=2"), ["`cap-tokens` is said twice"]),
    ],
)
def test_a_word_that_makes_no_filter_is_an_error(said: tuple[str, ...], parts: list[str]) -> None:
    with fails(WrongUse, *parts):
        Chain(said)


def test_turns_of_one_role_become_one() -> None:
    a, b = {"role": "assistant", "content": "c"}, {"role": "system", "content": "s"}
    assert merged(b, b, user("a"), user("b"), a, user("d")) == [
        {"role": "system", "content": "s\n\ns"}, user("a\n\nb"), a, user("d"),
    ]  # fmt: skip


def test_parts_are_put_together_and_keep_their_own_text() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:,x"}}
    assert merged(user("a"), user([picture]), user("b")) == [
        user([{"type": "text", "text": "a"}, picture, {"type": "text", "text": "b"}])
    ]


def test_turns_that_differ_in_more_than_their_content_stay_apart() -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}
    result = {"role": "tool", "tool_call_id": "1", "content": "x"}
    for messages in ([call, call], [result, result], [user("a", name="x"), user("b", name="y")], [user(1), user(2)]):
        assert merged(*messages) == messages
    assert merged(user("a", name="x"), user("b", name="x")) == [user("a\n\nb", name="x")]


@given(st.lists(st.builds(lambda role, text: {"role": role, "content": text}, st.sampled_from("ua"), st.text()), max_size=8))
def test_after_merging_user_and_assistant_take_turns(messages: list[Message]) -> None:
    names = {"u": "user", "a": "assistant"}
    before = [{**one, "role": names[one["role"]]} for one in messages]
    after = merged(*before)
    roles = [one["role"] for one in after]
    assert all(first != second for first, second in pairwise(roles))
    assert "".join(one["content"] for one in after).replace("\n", "") == "".join(one["content"] for one in before).replace(
        "\n", ""
    )


@pytest.mark.parametrize(
    ("path", "given_limits", "wanted"),
    [
        (CHAT, {}, {"max_tokens": 100}),
        (CHAT, {"max_tokens": None}, {"max_tokens": 100}),
        (CHAT, {"max_tokens": 99}, {"max_tokens": 99}),
        (CHAT, {"max_tokens": 100}, {"max_tokens": 100}),
        (CHAT, {"max_tokens": 101}, {"max_tokens": 100}),
        (CHAT, {"max_completion_tokens": 10**30}, {"max_completion_tokens": 100}),
        (CHAT, {"max_completion_tokens": 5, "max_tokens": 500}, {"max_completion_tokens": 5, "max_tokens": 100}),
        (CHAT, {"max_tokens": -1}, {"max_tokens": 100}),
        (CHAT, {"max_tokens": "5000"}, {"max_tokens": 100}),
        (CHAT, {"max_tokens": "inf"}, {"max_tokens": 100}),
        (CHAT, {"max_tokens": 100.5}, {"max_tokens": 100}),
        (CHAT, {"max_tokens": "many"}, {"max_tokens": "many"}),
        (CHAT, {"max_tokens": [1]}, {"max_tokens": [1]}),
        (CHAT, {"n_predict": 7}, {"n_predict": 7, "max_tokens": 100}),
        (CHAT, {"n_predict": -1, "max_tokens": 7}, {"n_predict": 100, "max_tokens": 7}),
        ("/chat/completions", {"max_tokens": 101}, {"max_tokens": 100}),
        ("/v1/completions", {}, {}),
        ("/v1/completions", {"max_tokens": 101}, {"max_tokens": 100}),
        ("/v1/responses", {}, {"max_output_tokens": 100}),
        ("/v1/messages", {"max_tokens": 101}, {"max_tokens": 100}),
        ("/v1/embeddings", {"max_tokens": 101}, {"max_tokens": 101}),
    ],
)
def test_limits_are_capped_under_each_of_their_names(path: str, given_limits: Message, wanted: Message) -> None:
    assert passed("cap-tokens=100", given_limits, path) == wanted


@pytest.mark.parametrize(
    ("effort", "becomes"), [("none", "none"), ("minimal", "none"), ("low", "high"), ("medium", "high"), ("high", "high")]
)
def test_an_effort_becomes_what_the_model_understands(effort: str, becomes: str) -> None:
    said = "reasoning-effort=minimal:none, low:high, medium:high"
    assert passed(said, {"reasoning_effort": effort}) == {"reasoning_effort": becomes}
    nested = passed(said, {"reasoning": {"effort": effort, "summary": "auto"}}, "/v1/responses")
    assert nested == {"reasoning": {"effort": becomes, "summary": "auto"}}


def test_an_effort_that_nothing_is_known_of_is_refused() -> None:
    with pytest.raises(Refusal) as caught:
        passed("reasoning-effort=none,medium:high", {"reasoning_effort": "low"})
    assert caught.value.param == "reasoning_effort"
    assert caught.value.message.endswith("It understands: `high`, `medium`, `none`.")


@pytest.mark.parametrize("body", [{}, {"reasoning_effort": None}, {"reasoning_effort": 3}, {"reasoning": "x"}])
def test_a_request_without_an_effort_is_left_alone(body: Message) -> None:
    assert passed("reasoning-effort=high", body) == body


def test_earlier_thinking_reaches_the_engine_under_both_names() -> None:
    turn = {"role": "assistant", "content": "4", "reasoning": "2 and 2"}
    assert passed("reasoning-field", {"messages": [user("x"), turn]})["messages"] == [
        user("x"), {**turn, "reasoning_content": "2 and 2"},
    ]  # fmt: skip
    for body in ({"messages": [user("x", reasoning=None)]}, {"messages": "odd"}, {"messages": [1]}):
        assert passed("reasoning-field", body) == body


@pytest.mark.parametrize("said", [(), tuple(find(name).example or name for name in names())], ids=["none", "all"])
def test_a_body_that_needs_no_change_keeps_every_byte(said: tuple[str, ...]) -> None:
    body = b' {"model" : "m", "max_tokens":  7,\n"x": 1.10e5, "y": "\\u00e4", "messages": [ {"role":"user"} ]}'
    assert Chain(said).request(CHAT, body) is body


def test_fields_that_are_not_set_keep_their_own_text() -> None:
    body = b'{"model": "m", "temperature": 1.10e0, "seed": 123456789012345678901234567890, "stop": ["\\u00e4" , "b"]}'
    assert Chain(("cap-tokens=5",)).request(CHAT, body) == (
        b'{"model":"m","temperature":1.10e0,"seed":123456789012345678901234567890,"stop":["\\u00e4" , "b"],"max_tokens":5}'
    )


@pytest.mark.parametrize("body", [b"no", b"[]", b"", b'{"max_tokens": NaN}', b'{"max_tokens": "\xff"}'])
def test_a_body_that_a_filter_cannot_read_is_refused(body: bytes) -> None:
    with pytest.raises(Refusal, match="not valid JSON"):
        Chain(("cap-tokens=5",)).request(CHAT, body)
