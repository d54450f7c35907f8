"""The language of a rule's tests, by value, and its promises for any value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.records import Scalar, Test
from stoker.rules.compare import Situation, all_hold, as_version, holds, passes, undecided

SITUATION: Situation = {
    "engine": "sglang", "version": "0.5.12", "sm": "12.1", "unified": True, "model": ("org/Some-Model-4", "some-model-4"),
    "build": "nightly-dev-cu13-20260323-999bad5a", "weights_share": 0.54,
    "--attention-backend": "FlashInfer", "--mem-fraction-static": "0.88", "--capture-sizes": ("1", "2", "64"), "--rm": True,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "test", "answer"),
    [
        ("engine", "sglang", True),
        ("engine", "SGLang", True),
        ("engine", "vllm", False),
        ("engine", ("vllm", "sglang"), True),
        ("engine", ("vllm", "llamacpp"), False),
        ("sm", "12.1", True),
        ("sm", "12.*", True),
        ("unified", True, True),
        ("unified", False, False),
        ("unified", "true", True),
        ("model", "*some-model-4*", True),
        ("model", "*other*", False),
        ("model", "!*other*", True),
        ("model", "!*some*", False),
        ("version", ">=0.5.12,<0.6", True),
        ("version", "<0.5.12", False),
        ("version", "<0.5.9", False),
        ("version", ">0.5.9", True),
        ("build", "nightly-dev-cu13-202603*", True),
        ("weights_share", ">0.5", True),
        ("weights_share", ">0.6", False),
        ("--mem-fraction-static", ">0.85", True),
        ("--mem-fraction-static", "<=0.88", True),
        ("--mem-fraction-static", 0.88, True),
        ("--attention-backend", "flashinfer", True),
        ("--attention-backend", "!triton", True),
        ("--capture-sizes", ">32", True),
        ("--capture-sizes", ">64", False),
        ("--rm", "set", True),
        ("--rm", "absent", False),
        ("--gone", "absent", True),
        ("--gone", "set", False),
        ("--gone", "flashinfer", False),
        ("--gone", "!flashinfer", True),
        ("$VARIABLE", "absent", True),
        ("lost$VARIABLE", "set", False),
        ("grant", "set", False),
    ],
)
def test_a_test_passes_or_fails(name: str, test: Test, answer: bool) -> None:
    assert holds(name, test, SITUATION) is answer


@pytest.mark.parametrize(("name", "test"), [("driver", ">=580"), ("arch", "aarch64"), ("arch", "!aarch64"), ("moe", True)])
def test_a_fact_that_nobody_knows_neither_passes_nor_fails(name: str, test: Test) -> None:
    assert holds(name, test, SITUATION) is None


def test_a_nightly_lies_on_no_side_of_a_version() -> None:
    assert holds("version", ">=0.5.12", {"version": "nightly-dev-cu13"}) is None
    assert holds("version", ("nightly*", ">=0.6"), {"version": "nightly-dev-cu13"}) is True


def test_one_failing_test_decides_even_where_another_is_unknown() -> None:
    assert all_hold({"engine": "vllm", "driver": ">=580"}, SITUATION) is False
    assert all_hold({"engine": "sglang", "driver": ">=580"}, SITUATION) is None
    assert all_hold({"engine": "sglang", "sm": "12.1"}, SITUATION) is True
    assert all_hold({}, SITUATION) is True


def test_what_an_answer_hangs_on_is_named() -> None:
    assert undecided({"engine": "sglang", "driver": ">=580", "arch": "aarch64"}, SITUATION) == ["driver", "arch"]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("0.5.12", (0, 5, 12)), ("v0.5.12", (0, 5, 12)), ("0.5.12.post1", (0, 5, 12)), ("26.05-py3", (26, 5)),
        ("0.6.0", (0, 6)),
        ("latest", None), ("nightly-dev-cu13-20260323", None), ("", None),
    ],
)  # fmt: skip
def test_a_version_is_its_leading_numbers(text: str, version: tuple[int, ...] | None) -> None:
    assert as_version(text) == version


scalars = st.text(max_size=12) | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False) | st.booleans()
tests = scalars | st.lists(scalars, max_size=3).map(tuple)


@given(tests, scalars | st.lists(scalars, max_size=3).map(tuple))
def test_any_test_of_any_value_gives_an_answer(test: Test, value: Scalar | tuple[Scalar, ...]) -> None:
    assert passes(test, value) in (True, False, None)


@given(st.text(max_size=12).filter(lambda text: not text.startswith(("!", ">", "<"))), scalars)
def test_a_negation_is_the_opposite(test: str, value: Scalar) -> None:
    plain, negated = passes(test, value), passes(f"!{test}", value)
    assert (plain is None and negated is None) or negated is (not plain)


@given(st.integers(-1000, 1000), st.integers(-1000, 1000))
def test_numbers_compare_as_numbers(value: int, limit: int) -> None:
    assert passes(f">{limit}", value) is (value > limit)
    assert passes(f"<={limit}", str(value)) is (value <= limit)
