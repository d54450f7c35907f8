"""The three templates: sparkrun's, eugr's and llama-swap's."""

from __future__ import annotations

import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.plan.written.template import Filled, blanks, fill_macros, fill_once, fill_repeatedly, mask_blanks, unmask_blanks
from stoker.records import Recipe

JSON = '{"method": "mtp", "n": 2}'


@pytest.mark.parametrize(
    ("template", "values", "text"),
    [
        ("--a {a}", {"a": "1"}, "--a 1"),
        ("--a {a}", {"a": "{b}", "b": "{c}", "c": "3"}, "--a 3"),
        ("--c '{c}'", {"c": JSON}, f"--c '{JSON}'"),
        (f"--c '{JSON}'", {}, f"--c '{JSON}'"),
        ("--c '{{x}}'", {"x": '"y"'}, "--c '{\"y\"}'"),
    ],
)
def test_version_2_fills_until_nothing_changes_and_leaves_json_alone(
    template: str, values: dict[str, str], text: str
) -> None:
    assert fill_repeatedly(template, values) == Filled(text)


@pytest.mark.parametrize(
    ("template", "values", "text"),
    [
        ("--a {a}", {"a": "1"}, "--a 1"),
        ("--a {a}", {"a": "{b}", "b": "2"}, "--a {b}"),
        ("--c '{{\"n\":{n}}}'", {"n": "2"}, "--c '{\"n\":2}'"),
    ],
)
def test_version_1_fills_once_and_halves_doubled_braces(template: str, values: dict[str, str], text: str) -> None:
    assert fill_once(template, values) == Filled(text)


def test_an_unknown_key_stays_and_is_told_once() -> None:
    said = ("`{key}` has no value in the recipe and stays as it is",)
    assert fill_repeatedly("{key} {key}", {}) == Filled("{key} {key}", said)
    assert fill_once("{key} {key}", {}) == Filled("{key} {key}", said)


def test_what_python_would_format_is_left_as_it_is() -> None:
    assert fill_once("{a:>9} {a!r} {a.b}", {"a": "1"}).text == "{a:>9} {a!r} {a.b}"


@pytest.mark.parametrize("template", ["{a", "a}", "{", "{a[}", "{!}"])
def test_braces_that_do_not_pair_are_told(template: str) -> None:
    filled = fill_once(template, {"a": "1"})
    assert filled.text == template
    assert "do not pair" in filled.said[0]


def test_values_that_stand_for_each_other_end() -> None:
    assert fill_repeatedly("{a}", {"a": "{b}", "b": "{a}"}).said == (
        "values of the template stand for each other in a circle",
    )


@pytest.mark.parametrize("is_macro", [False, True])
def test_values_that_swell_are_not_filled_in(is_macro: bool) -> None:
    sign = "${" if is_macro else "{"
    swelling = {name: f"{sign}{following}}}" * 1000 for following, name in zip("edcb", "dcba", strict=True)}
    start = time.process_time()
    filled = (fill_macros if is_macro else fill_repeatedly)(f"{sign}a}}", swelling)
    assert "nothing was filled in" in filled.said[0]
    assert time.process_time() - start < 5


def test_a_macro_may_use_those_declared_before_it() -> None:
    macros = {"ctx": "4096", "args": "--ctx-size ${ctx}"}
    assert fill_macros("x ${args}", macros) == Filled("x --ctx-size 4096")
    late = fill_macros("x ${args}", dict(reversed(macros.items())))
    assert late.text == "x --ctx-size ${ctx}"
    assert late.said == ("`${ctx}` is a macro that nothing declares: llama-swap refuses the file",)


def test_a_variable_of_the_environment_stays_and_is_told() -> None:
    filled = fill_macros("${env.HOME}/m", {})
    assert filled == Filled(
        "${env.HOME}/m", ("`${env.HOME}` comes from the environment of llama-swap, which is not in the file",)
    )


def test_blanks_to_fill_in_are_words_to_the_shell_and_come_back() -> None:
    text = "serve --a <my model> --b <org/name> 2>/dev/null <<EOF"
    assert blanks(text) == ("`<my model>` is for you to fill in", "`<org/name>` is for you to fill in")
    masked = mask_blanks(text)
    assert "<my" not in masked
    assert "2>/dev/null <<EOF" in masked
    assert unmask_blanks(Recipe(kind="recipe", words=(masked,))).words == (text,)


texts = st.text(alphabet="ab{}$:!.[]0 " + string.ascii_lowercase[:3], max_size=40)
values = st.dictionaries(st.sampled_from(list("abc")), texts)


@given(texts, values)
def test_no_template_is_beyond_them(template: str, given_values: dict[str, str]) -> None:
    for filled in (
        fill_repeatedly(template, given_values), fill_once(template, given_values), fill_macros(template, given_values),
    ):  # fmt: skip
        assert isinstance(filled.text, str)
