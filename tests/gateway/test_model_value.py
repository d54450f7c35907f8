"""An alias in a request's body: exactly the bytes of the model's value are replaced, and msgspec reads the new one."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.errors import WrongUse
from stoker.gateway.model_value import replace_model
from support import fails

REAL = 'qwen3 "coder"\\ü'
SPACE = st.text(" \t\n\r", max_size=3)
LETTERS = st.sampled_from(("{0}", "\\u{1:04x}", "\\u{1:04X}"))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
KEYS = st.sampled_from(("model", "models", 'x"model', "mo\\del", "Model", "x", "")) | st.text(max_size=4)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))
TEXTS = st.text() | st.sampled_from(("coder", '"model": "x"', '\\"model\\": \\"x\\"', "\\", '"', '{"model":"x"}', "}]{["))


class Named(msgspec.Struct):
    model: str


@st.composite
def members(draw: st.DrawFn, key: str, value: Any) -> tuple[str, str]:
    """Draws a member as a client may write it: what stands before its value, and the value."""
    spelled = json.dumps(key)
    if key == "model":
        spelled = '"' + "".join(draw(LETTERS).format(letter, ord(letter)) for letter in key) + '"'
    written = json.dumps(value, ensure_ascii=draw(st.booleans()))
    return f"{draw(SPACE)}{spelled}{draw(SPACE)}:{draw(SPACE)}", written


@st.composite
def bodies(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """Draws a body that names models, maybe twice and anywhere, and the same with the real one in their places."""
    others = draw(st.lists(st.tuples(KEYS.filter(lambda key: key != "model"), VALUES), max_size=4))
    named = draw(st.lists(st.tuples(st.just("model"), TEXTS), min_size=1, max_size=3))
    given, wanted = [], []
    for key, value in draw(st.permutations([*others, *named])):
        before, written = draw(members(key, value))
        after = draw(SPACE)
        given.append(before + written + after)
        wanted.append(before + (msgspec.json.encode(REAL).decode() if key == "model" else written) + after)
    left, right = draw(SPACE) + "{", "}" + draw(SPACE)
    return tuple((left + ",".join(parts) + right).encode(errors="replace") for parts in (given, wanted))  # type: ignore[return-value]


@given(bodies())
def test_exactly_the_values_of_the_bodys_own_model_are_replaced(pair: tuple[bytes, bytes]) -> None:
    body, wanted = pair
    msgspec.json.decode(body, type=Named)  # what is not read so is refused before
    assert replace_model(body, REAL) == wanted


@given(bodies())
def test_every_reader_finds_the_real_model(pair: tuple[bytes, bytes]) -> None:
    body = replace_model(pair[0], REAL)
    assert msgspec.json.decode(body, type=Named).model == REAL  # the last of several
    assert json.loads(body)["model"] == REAL
    first = json.loads(body, object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    assert first["model"] == REAL


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (b'{"messages":[{"model":"a"}],"model":"a"}', b'{"messages":[{"model":"a"}],"model":"m"}'),
        (b'{"model":"a","x":{"model":"a"}}', b'{"model":"m","x":{"model":"a"}}'),
        (b'{"x\\"model":"a","model" :\n"a"}', b'{"x\\"model":"a","model" :\n"m"}'),
        (b'{"mod\\u0065l":"a"}', b'{"mod\\u0065l":"m"}'),
        (b'{"x":"\\\\","model":"a\\"}"}', b'{"x":"\\\\","model":"m"}'),
        (b'{"x":"}","model":"a"}  ', b'{"x":"}","model":"m"}  '),
        (b'{"x":["model","model"],"model":"a"}', b'{"x":["model","model"],"model":"m"}'),
        (b'{"model":"a","model":"b"}', b'{"model":"m","model":"m"}'),
        (b'{"Model":"a","model ":"a","model":"a"}', b'{"Model":"a","model ":"a","model":"m"}'),
    ],
)
def test_what_looks_like_the_models_value_and_is_not_stays(body: bytes, wanted: bytes) -> None:
    msgspec.json.decode(body, type=Named)
    assert replace_model(body, "m") == wanted


def test_a_body_of_10_mb_is_no_trouble_wherever_its_model_stands() -> None:
    text = json.dumps("long \\ \" 'text' {[" * 500_000).encode()
    assert replace_model(b'{"x":' + text + b',"model":"a"}', "m") == b'{"x":' + text + b',"model":"m"}'


def test_too_many_members_of_that_name_are_refused_and_not_looked_through() -> None:
    many = b'{"x":[' + b'{"model":""},' * 10_000 + b'1],"model":"a"}'
    with fails(WrongUse, "more than 10000 members called `model`"):
        replace_model(many, "m")
    some = many.replace(b'{"model":""},', b"", 1)
    assert replace_model(some, "m") == some.replace(b'"model":"a"', b'"model":"m"')
