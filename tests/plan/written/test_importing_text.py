"""The TOML of imported services, and what counts as a secret in it."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.plan.importing.fields import as_value, number
from stoker.plan.importing.toml import render_comments, render_key, render_table, render_value
from stoker.plan.secrets import hide, is_secret, is_secret_flag, is_secret_variable, secrets_in, without_secrets
from stoker.records import Setting

scalars = st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=30)


@given(st.dictionaries(st.text(max_size=8), scalars | st.lists(scalars, max_size=4).map(tuple), max_size=5))
def test_a_table_is_read_back_as_it_was(values: dict[str, bool | int | float | str]) -> None:
    lines = [*render_comments(map(str, values)), *render_table(("service", "a.b"), values)]
    read = tomllib.loads("\n".join(lines))["service"]["a.b"]
    assert read == {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}
    assert [type(value) for value in read.values() if not isinstance(value, list)] == [
        type(value) for value in values.values() if not isinstance(value, tuple)
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (8, "8"),
        (0.8, "0.8"),
        ("triton", '"triton"'),
        ('{"method":"mtp"}', '\'{"method":"mtp"}\''),
        ("""it's "so\"""", '"it\'s \\"so\\""'),
        ("C:\\x", '"C:\\\\x"'),
        ("a\nb\x7f", '"a\\nb\\u007f"'),
        ("\ud800", '"?"'),
        ((1, "a"), '[1, "a"]'),
        ((), "[]"),
    ],
)
def test_a_value_is_written_as_a_person_would(value: bool | int | float | str | tuple[int | str, ...], text: str) -> None:
    assert render_value(value) == text


def test_only_plain_keys_are_bare() -> None:
    assert [render_key(key) for key in ("max-model_len", "qwen2.5", "", "\u017c", 'a"b')] == [
        "max-model_len", '"qwen2.5"', '""', '"\u017c"', "'a\"b'",
    ]  # fmt: skip


def test_a_comment_stays_one_line_whatever_is_in_it() -> None:
    assert list(render_comments(["a\nb\r\n[service.x]\x1b[31m\u2028\x7f"])) == ["# a b [service.x]?[31m ?"]


@pytest.mark.parametrize(
    ("text", "value"),
    [("8", 8), ("-1", -1), ("0.7", 0.7), ("0.70", None), ("08", None), ("1e3", None), ("inf", None), ("nan", None),
     ("1_0", None),
     ("\u0663", None), ("9" * 5000, None), ("", None), ("true", None)],
)  # fmt: skip
def test_a_number_is_one_only_where_it_would_be_printed_the_same(text: str, value: float | None) -> None:
    assert number(text) == value
    assert as_value((text,)) == (text if value is None else value)


@pytest.mark.parametrize("name", ["HF_TOKEN", "OPENAI_API_KEY", "API_KEY", "DB_PASSWORD", "TOKEN", "apikey", "AWS_KEY"])
def test_these_variables_are_secrets(name: str) -> None:
    assert is_secret_variable(name, "x")


@pytest.mark.parametrize("name", ["MAX_TOKENS", "VLLM_USE_V1", "TOKENIZERS_PARALLELISM", "KEYRING", "HF_HOME"])
def test_these_variables_are_settings(name: str) -> None:
    assert not is_secret_variable(name, "x")
    assert is_secret_variable(name, "nvapi-0123456789abcdef0123")


@pytest.mark.parametrize(
    ("flag", "is_secret"),
    [("--api-key", True), ("--admin-api-key", True), ("--hf-token", True), ("--api-key-file", False),
     ("--image-token", False),
     ("--max-num-batched-tokens", False), ("--tokenizer", False), ("--ssl-keyfile", False)],
)  # fmt: skip
def test_a_flag_is_a_secret_by_its_name_or_by_what_it_was_given(flag: str, is_secret: bool) -> None:
    assert is_secret_flag(flag, ("x",)) == is_secret
    assert is_secret_flag(flag, ("x", "sk-0123456789abcdefgh"))


def test_secrets_are_blotted_out_of_sentences_the_longest_first() -> None:
    secrets = frozenset({"swordfish", "swordfish2", "$HF_TOKEN", "on"})
    sentence = "swordfish2 and swordfish on $HF_TOKEN, hf_0123456789abcdefgh"
    assert hide(sentence, secrets) == "*** and *** on $HF_TOKEN, ***"


@pytest.mark.parametrize(
    ("name", "value", "is_one"),
    [("--api-key", "x", True), ("--api_key", "x", True), ("$HF_TOKEN", "x", True), ("HF_TOKEN", "x", True),
     ("--x", ("a", "sk-0123456789abcdefgh"), True), ("--api-key", True, True), ("API_KEY_FILE", "/x", False),
     ("--api-key-file", "/x", False), ("$MAX_TOKENS", 5, False), ("--max-model-len", 4096, False)],
)  # fmt: skip
def test_a_setting_is_a_secret_whichever_way_it_is_said(name: str, value: str | int | tuple[str, ...], is_one: bool) -> None:
    assert is_secret(name, value) == is_one


def test_the_secrets_of_a_command_are_named_without_their_values() -> None:
    words = ("run", "--api-key", "a", "--hf-token=b", "--env", "DB_PASSWORD=c", "hf_0123456789abcdefgh", "--x=1", "A=b")
    named = secrets_in(words, [("HF_TOKEN", "d"), ("HF_HOME", "/h")])
    assert named == ("HF_TOKEN", "--api-key", "--hf-token", "DB_PASSWORD", "a word in the form of a token")


def test_settings_are_shown_without_the_secrets_in_them() -> None:
    shown = without_secrets([Setting("$HF_TOKEN", "swordfish", "asked"), Setting("--max-model-len", 5, "asked")])
    assert [(one.name, one.value) for one in shown] == [("$HF_TOKEN", "***"), ("--max-model-len", 5)]
