"""What is said of flags that a version does not know, or that are none at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.plan.flag_findings import find_wrong_flags
from stoker.records import Catalog, Finding, Flag

OLD = Catalog("engine", "1", "made up", (Flag("--context", "int"), Flag("--gone", "int")), ("equals", "dotted"))
NEW = Catalog(
    "engine", "2", "made up",
    (Flag("--context", "int"), Flag("--backend", choices=("a", "b")), Flag("--config", "json", aliases=("-c",))),
    ("equals", "dotted"),
)  # fmt: skip


def wrong(*words: str, catalog: Catalog | None = NEW, exact: bool = True) -> list[Finding]:
    return find_wrong_flags(words, catalog, [OLD, NEW], exact)


def test_flags_that_the_version_has_are_right() -> None:
    assert wrong("model", "--context", "8", "-c.key", "1", "--config.other=2", "--backend", "a") == []
    assert wrong("model", "--", "other") == [], "what follows is no flag, and was not meant as one"


def test_an_unknown_version_is_held_against_all_that_are_known() -> None:
    assert wrong("--gone", "1", "--backend=zzz", catalog=None) == [], "some version has it; its values are not known"
    [finding] = wrong("--contxt", "1", catalog=None)
    assert (finding.level, finding.rule) == ("warn", "flag-unknown")
    assert "1 to 2 were looked at" in finding.why
    assert "write --context" in finding.fix
    assert find_wrong_flags(["--any"], None, [], exact=False) == []


def test_a_flag_of_another_version_is_unknown_to_this_one() -> None:
    [finding] = wrong("--gone", "1")
    assert (finding.level, finding.rule, finding.drop) == ("forbid", "flag-unknown", ("--gone",))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--context 8"], "it holds a blank"),
        (["--context 8=3"], "it holds a blank"),
        (["--\u00e9", "8"], "letters a to z"),
        (["---context", "8"], "letters a to z"),
        (["\u2013context", "8"], "write --context"),
        (["\u2014context", "8"], "write --context"),
        (["model", "--", "--context", "8"], "what follows `--` is no flag"),
    ],
)
def test_a_word_that_cannot_be_a_flag_is_told_with_the_reason(words: list[str], says: str) -> None:
    [finding] = [one for one in wrong(*words) if one.rule == "flag-malformed"]
    assert finding.level == "forbid"
    assert says in f"{finding.why}; {finding.fix}"
    assert [one.level for one in wrong(*words, catalog=None, exact=False) if one.rule == "flag-malformed"] == ["warn"]


@pytest.mark.parametrize("word", ["--$NAME", "--{{name}}=1", "--`x`", "--${A}"])
def test_a_word_that_is_filled_in_later_is_not_judged(word: str) -> None:
    assert wrong(word) == []


def test_a_value_that_looks_odd_is_a_value() -> None:
    assert wrong("--config", "\u2014x", "--context", "8") == []


@given(st.lists(st.text(max_size=8) | st.sampled_from(["--", "-", "--context", "-c.a", "\u2014a", "--a b"]), max_size=6))
def test_no_words_upset_it(words: list[str]) -> None:
    for catalog in (NEW, None):
        assert all(finding.what for finding in find_wrong_flags(words, catalog, [OLD, NEW], exact=False))
