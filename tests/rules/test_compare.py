"""The language of a rule's tests, by value, and its promises for any value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.records import Scalar, Test
from stoker.rules.compare import Situation, all_hold, as_number, as_version, holds, passes, undecided

SITUATION: Situation = {
    "engine": "sglang", "version": "0.5.12", "sm": "12.1", "unified": True, "model": ("org/Some-Model-4", "some-model-4"),
    "build": "nightly-dev-cu13-20260323-999bad5a", "weights_share": 0.54,
    "--attention-backend": "FlashInfer", "--mem-fraction-static": "0.88", "--capture-sizes": ("1", "2", "64"), "--rm": True,
    "--share": ".88", "--max-model-len": "1M", "driver": "580.9",
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
        ("--share", ">0.85", True),
        ("--share", 0.88, True),
        ("--max-model-len", ">1000000", True),
        ("--max-model-len", 1048576, True),
        ("driver", ">=580.10", False),
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


@pytest.mark.parametrize(("name", "test"), [("cuda", ">=13"), ("arch", "aarch64"), ("arch", "!aarch64"), ("moe", True)])
def test_a_fact_that_nobody_knows_neither_passes_nor_fails(name: str, test: Test) -> None:
    assert holds(name, test, SITUATION) is None


def test_a_nightly_lies_on_no_side_of_a_version() -> None:
    assert holds("version", ">=0.5.12", {"version": "nightly-dev-cu13"}) is None
    assert holds("version", ("nightly*", ">=0.6"), {"version": "nightly-dev-cu13"}) is True


def test_one_failing_test_decides_even_where_another_is_unknown() -> None:
    assert all_hold({"engine": "vllm", "cuda": ">=13"}, SITUATION) is False
    assert all_hold({"engine": "sglang", "cuda": ">=13"}, SITUATION) is None
    assert all_hold({"engine": "sglang", "sm": "12.1"}, SITUATION) is True
    assert all_hold({}, SITUATION) is True


def test_what_an_answer_hangs_on_is_named() -> None:
    assert undecided({"engine": "sglang", "cuda": ">=13", "arch": "aarch64"}, SITUATION) == ["cuda", "arch"]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("0.5.12", (0, 5, 12)), ("v0.5.12", (0, 5, 12)), ("0.5.12.post1", (0, 5, 12)), ("26.05-py3", (26, 5)),
        ("0.6.0", (0, 6)), ("b11549", (11549,)), ("9" * 5000, None), (f"0.{'1' * 5000}.2", None),
        ("latest", None), ("nightly-dev-cu13-20260323", None), ("", None),
    ],
)  # fmt: skip
def test_a_version_is_its_leading_numbers(text: str, version: tuple[int, ...] | None) -> None:
    assert as_version(text) == version


def test_a_version_of_two_numbers_is_no_fraction() -> None:
    assert holds("version", ">=0.9", {"version": "0.20"}) is True
    assert holds("version", "<0.9", {"version": "0.20"}) is False
    assert passes(">=0.9", "0.20") is False, "a share is one"


# Each as vLLM 0.20.2 and 0.33.0 read it, tried on their own parsers.
@pytest.mark.parametrize(
    ("text", "number"),
    [
        (".95", 0.95), ("95.", 95), ("1e-1", 0.1), ("+0.9", 0.9), ("0.9_5", 0.95), ("1_000", 1000), (" 16 ", 16), ("-1", -1),
        ("64k", 64_000), ("64K", 65_536), ("1M", 2**20), ("1m", 10**6), ("2g", 2 * 10**9), ("1G", 2**30), ("25.6k", 25_600),
        (" 64k ", 64_000), ("1T", 2**40),
        ("6.5K", None), ("1__0", None), ("_1", None), ("k", None), ("8kb", None), ("1e5k", None), ("-8k", None), ("", None),
        ("nan", None), ("inf", None), ("-Infinity", None), ("auto", None), ("0x10", None), ("$SHARE", None),
    ],
)  # fmt: skip
def test_numbers_are_read_as_the_engines_read_them(text: str, number: float | None) -> None:
    assert as_number(text) == pytest.approx(number) if number is not None else as_number(text) is None


def test_numbers_that_no_float_holds_are_none() -> None:
    assert as_number(10**400) is None
    assert as_number(float("nan")) is None
    assert as_number("9" * 5000) is None
    assert passes(">0.85", "nan") is None
    assert passes(10**400, "1") is False


ODD = [
    "nan",
    "inf",
    "-inf",
    "1e999",
    "9" * 5000,
    "." + "9" * 5000,
    "1_0",
    "_",
    "+",
    ".",
    "e",
    "64k",
    "1M",
    "\u0663",
    "\u00b2",
]
numbers = st.integers() | st.floats() | st.sampled_from(ODD)
scalars = st.text(max_size=12) | numbers | st.booleans()
tests = scalars | st.lists(scalars, max_size=3).map(tuple)


@given(tests, scalars | st.lists(scalars, max_size=3).map(tuple))
def test_any_test_of_any_value_gives_an_answer(test: Test, value: Scalar | tuple[Scalar, ...]) -> None:
    assert passes(test, value) in (True, False, None)


@given(st.sampled_from([">", ">=", "<", "<=", "!>", ""]), numbers, numbers | st.text(max_size=6))
def test_any_bound_on_any_number_gives_an_answer(sign: str, limit: Scalar, value: Scalar) -> None:
    for name in ("--flag", "version"):
        assert holds(name, f"{sign}{limit}", {name: value}) in (True, False, None)


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_share_is_compared_however_it_is_written(value: float, limit: float) -> None:
    for text in (repr(value), f"+{value!r}", f" {value!r}", repr(value).replace("0.", ".", 1) if value < 1 else repr(value)):
        assert passes(f">{limit!r}", text) is (value > limit)


@given(st.integers(0, 10**6), st.sampled_from("kmgt"))
def test_a_count_is_decimal_in_small_letters_and_binary_in_large(count: int, letter: str) -> None:
    power = "kmgt".index(letter) + 1
    assert as_number(f"{count}{letter}") == count * 1000**power
    assert as_number(f"{count}{letter.upper()}") == count * 1024**power


@given(st.text(max_size=12).filter(lambda text: not text.startswith(("!", ">", "<"))), scalars)
def test_a_negation_is_the_opposite(test: str, value: Scalar) -> None:
    plain, negated = passes(test, value), passes(f"!{test}", value)
    assert (plain is None and negated is None) or negated is (not plain)


@given(st.integers(-1000, 1000), st.integers(-1000, 1000))
def test_numbers_compare_as_numbers(value: int, limit: int) -> None:
    assert passes(f">{limit}", value) is (value > limit)
    assert passes(f"<={limit}", str(value)) is (value <= limit)
