"""YAML with its lines, its doubled keys, and the traps that a file can hold for its reader."""

from __future__ import annotations

import time

import pytest

from stoker.errors import StokerError
from stoker.plan.written.table import Table, scalar_text
from stoker.plan.written.tree import MOST_CHARACTERS, read_tree
from support import fails

MERGES = "a0: &a0 {k: 1}\n" + "".join(f"a{n}: &a{n}\n  <<: [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
ALIASES = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))


def test_keys_know_their_lines() -> None:
    tree = read_tree("a: 1\nb:\n  c: 2\n  d:\n    - e: 3\n", "f")
    assert (tree.line("b.c"), tree.line("b.d.0.e"), tree.line("gone")) == (3, 5, 0)


def test_a_doubled_key_is_told_with_the_line_that_counts() -> None:
    tree = read_tree("a: 1\nb: {c: 1, c: 2}\na: 3\n", "f")
    assert tree.value == {"a": 3, "b": {"c": 2}}
    assert tree.complaints() == [
        "`a` stands twice, the second time in line 3: that one counts",
        "`b.c` stands twice, the second time in line 2: that one counts",
    ]


def test_a_key_that_overrides_a_merged_one_is_not_doubled() -> None:
    tree = read_tree("x: &x {a: 1}\ny: &y {<<: *x, a: 2}\nz: {<<: *y}\n", "f")
    assert tree.value == {"x": {"a": 1}, "y": {"a": 2}, "z": {"a": 2}}
    assert tree.doubled == ()


def test_a_date_that_no_calendar_has_is_text() -> None:
    assert read_tree("day: 2026-02-30\n", "f").value == {"day": "2026-02-30"}


def test_an_anchor_inside_itself_is_read() -> None:
    assert set(read_tree("a: &a [*a]\nb: &b\n  <<: *b\n", "f").value) == {"a", "b"}  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [", "line 2"),
        ("a: 1\n---\nb: 2\n", "expected a single document"),
        ("[" * 100_000, "nested deeper"),
        ("- " * 50_000 + "x", "nested deeper"),
        (MERGES, "its merges make more than"),
        ("x" * (MOST_CHARACTERS + 1), "it is longer than"),
        ("? [a, b]\n: 1\n", "unhashable"),
        (ALIASES + "? *a11\n: 1\n", "unhashable"),
        ("a: !!int x\n", "invalid literal"),
        ("a: !!bool x\n", "'x'"),
        ("a: !!timestamp x\n", "groupdict"),
        ("a: " + "9" * 6000, "digits"),
        ("a: !secret x\n", "!secret"),
        ("a: \0\n", "unacceptable character"),
        ("a: \ud800\n", "surrogates"),
    ],
    ids=range(15),
)
def test_what_cannot_be_read_is_said_and_at_once(text: str, says: str) -> None:
    start = time.process_time()
    with fails(StokerError, "f is not valid YAML", says):
        read_tree(text, "f")
    assert time.process_time() - start < 5


def test_aliases_that_would_fill_the_memory_are_shared_instead() -> None:
    tree = read_tree(ALIASES, "f")
    assert Table(tree.value).texts("a11") == ()


def test_a_table_says_what_is_not_of_the_kind_expected_and_leaves_it_out() -> None:
    values: dict[object, object] = {
        "a": [1, "b", None],
        "n": "many",
        "t": {"x": 1},
        "s": {},
        5: "five",
        None: 1,
        "maybe": None,
    }
    table = Table(values)
    assert table.texts("a") == ("1", "b")
    assert table.number("n") is None
    assert table.text("t") is None
    assert table.tables("t") == []
    assert table.table("n").values == {}
    assert table.table("t").pairs() == {"x": "1"}
    assert table.text("5") == "five"
    assert table.said == [
        "`a` should be a list of words, and is not",
        "`n` should be a whole number, and is 'many'",
        "`t` should be one value, and is not",
        "`t` should be a list, and is not",
        "`n` should hold keys with values, and does not",
    ]


def test_an_unknown_key_is_told_with_the_one_that_was_meant() -> None:
    table = Table({"known": 1, "knwon": 2, "alien": 3})
    table.check_keys({"known"}, "this format")
    assert table.said == [
        "`knwon` is no key of this format; meant is perhaps `known`",
        "`alien` is no key of this format",
    ]


def test_scalars_become_the_text_that_pythons_tools_print() -> None:
    values: tuple[object, ...] = (True, 0.8, 8, "x", None, [], {}, 10**5000)
    assert [scalar_text(value) for value in values] == [
        "True", "0.8", "8", "x", None, None, None, None,
    ]  # fmt: skip
