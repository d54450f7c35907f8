"""Words survive every file they are written to: read back by systemd's own rules, they are the same words."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from launch_samples import HOSTILE_WORDS, make_container, make_small_container, make_unit
from stoker.errors import Refused
from stoker.launch.compose import render_compose
from stoker.launch.container import render_docker_run, render_podman_run
from stoker.launch.quadlet import render_quadlet
from stoker.launch.unit import render_unit
from stoker.plan.secrets import secrets_in
from support import fails
from systemd_syntax import exec_argv, split_words, values_of, without_specifiers


def holds_no_secret(words: list[str]) -> bool:
    """Tells whether no word looks like a secret, which would be refused; chance takes its texts from all of our own."""
    return not secrets_in(words)


CONTROL_FREE = st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp", "Cn"))
SPECIAL = st.sampled_from(" \"'\\%$;#{}=,:*-")
WORDS = st.lists(st.one_of(st.sampled_from(HOSTILE_WORDS), st.text(st.one_of(SPECIAL, CONTROL_FREE)))).filter(
    holds_no_secret
)
ANY_TEXT = st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))).filter(holds_no_secret)
VALUES = st.text(CONTROL_FREE).filter(lambda value: not secrets_in((), [("EXTRA", value)]))


@given(WORDS)
def test_a_units_words_come_back_from_systemds_rules(words: list[str]) -> None:
    argv = ("/usr/bin/engine", *words)
    assert tuple(exec_argv(render_unit(make_unit(argv=argv)))) == argv


def test_a_lone_semicolon_and_a_comment_sign_are_quoted_at_the_start_of_a_line() -> None:
    text = render_unit(make_unit(argv=("/bin/engine", *["--option-that-makes-it-long"] * 6, ";", "#no", "-a", ";x")))
    assert '";"' in text
    assert '"#no"' in text
    assert '";x"' in text


@given(VALUES)
def test_an_environment_value_comes_back_from_systemds_rules(value: str) -> None:
    [line] = values_of(render_unit(make_unit(environment=(("EXTRA", value),))), "Environment")
    assert [without_specifiers(word) for word in split_words(line)] == [f"EXTRA={value}"]


@given(WORDS.map(lambda words: [word for word in words if word not in ("", ";")]))
def test_a_quadlets_words_come_back_from_podmans_rules(words: list[str]) -> None:
    text = render_quadlet(make_container(words=tuple(words)))
    assert (exec_argv(text, "Exec") if words else []) == words


@given(ANY_TEXT, VALUES)
def test_a_compose_files_words_come_back_as_text(words: list[str], value: str) -> None:
    launch = make_container(words=tuple(words), environment=(("EXTRA", value),), labels=(("x", value),))
    service = yaml.safe_load(render_compose([launch]))["services"]["stoker-coder"]
    assert [interpolated(word) for word in service.get("command", [])] == words
    assert interpolated(service["environment"]["EXTRA"]) == interpolated(service["labels"]["x"]) == value


def interpolated(text: str) -> str:
    """Returns text as compose reads it: `$$` is a dollar, and any other `$` would be a variable."""
    assert isinstance(text, str)
    assert "$" not in text.replace("$$", "")
    return text.replace("$$", "$")


@pytest.mark.parametrize("word", ["1e3", "0o17", "on", "no", "1:30", "null", "~", "0x1F", "2026-01-01", "1_000", ""])
def test_words_that_look_like_numbers_to_some_yaml_are_quoted(word: str) -> None:
    text = render_compose([make_small_container(words=(word,))])
    assert f'- "{word}"\n' in text


@given(ANY_TEXT)
def test_the_words_after_the_image_are_the_engines_own(words: list[str]) -> None:
    launch = make_container(words=tuple(words))
    for argv in (render_docker_run(launch), render_podman_run(launch)):
        assert argv[len(argv) - len(words) :] == tuple(words)
        assert argv[len(argv) - len(words) - 1].endswith(launch.image)


@given(st.characters(categories=("Cc", "Zl", "Zp")))
def test_a_unit_and_a_quadlet_refuse_control_characters(letter: str) -> None:
    for word in (f"a{letter}b", letter, f"{letter}\nExecStart=/bin/sh"):
        with fails(Refused, "control character"):
            render_unit(make_unit(argv=("/bin/engine", word)))
        with fails(Refused, "control character"):
            render_quadlet(make_container(words=(word,)))
        with fails(Refused, "control character"):
            render_unit(make_unit(environment=(("EXTRA", word),)))


@pytest.mark.parametrize("letter", ["\ufffe", "\uffff", "\ufdd0", "\U0010ffff", "\ud800"])
def test_signs_for_which_systemd_drops_a_whole_line_are_refused(letter: str) -> None:
    with fails(Refused, "control character"):
        render_unit(make_unit(argv=("/bin/engine", letter)))
