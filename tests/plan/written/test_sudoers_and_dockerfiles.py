"""Grants with their aliases and tags, and what an image that somebody builds starts by itself."""

from __future__ import annotations

import pytest

from stoker.plan.written.dockerfile import looks_like, read
from stoker.plan.written.sudoers import looks_like as looks_like_sudoers
from stoker.plan.written.sudoers import read as read_sudoers


@pytest.mark.parametrize(
    ("text", "grants"),
    [
        ("u ALL=/a", ("u ALL= /a",)),
        ("u h = (root) NOPASSWD: /a b, /c", ("u h=(root) NOPASSWD: /a b", "u h=(root) NOPASSWD: /c")),
        ("u ALL=(a) /x, (b) PASSWD: /y, NOPASSWD: /z", ("u ALL=(a) /x", "u ALL=(b) PASSWD: /y", "u ALL=(b) NOPASSWD: /z")),
        ("%g ALL=(ALL:ALL) NOPASSWD:SETENV: ALL", ("%g ALL=(ALL:ALL) NOPASSWD:SETENV: ALL",)),
        ("u ALL=(a, b) /x", ("u ALL=(a, b) /x",)),
        ("u ALL=/x a\\, b # c", ("u ALL= /x a\\, b",)),
        ("Cmnd_Alias A = /x, B : B = /y\nu ALL=A, !B", ("u ALL= /x", "u ALL= /y", "u ALL= !/y")),
        ("u ALL= \\\n  /x, \\\n  /y", ("u ALL= /x", "u ALL= /y")),
        ("a\\ b ALL=/x", ("a\\ b ALL= /x",)),
    ],
)
def test_a_grant_is_a_line_for_each_command(text: str, grants: tuple[str, ...]) -> None:
    [recipe] = read_sudoers(text, "sudoers")
    assert recipe.grants == grants
    assert recipe.unknown == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("User_Alias U = a, b", "line 2 names a group of users or hosts, which was not filled in"),
        ("#includedir /etc/x", "line 2 includes other files, which are not seen here"),
        ("what is this", "line 2 was not understood"),
    ],
)
def test_lines_of_sudoers_that_stay_open_are_told(text: str, said: str) -> None:
    [recipe] = read_sudoers(f"u ALL=/x\n{text}", "sudoers")
    assert recipe.unknown == (said,)
    assert recipe.line == 1


def test_aliases_in_a_circle_end() -> None:
    [recipe] = read_sudoers("Cmnd_Alias A = B\nCmnd_Alias B = A\nu ALL=A", "sudoers")
    assert recipe.grants[0] in ("u ALL= A", "u ALL= B")


def test_scripts_do_not_look_like_sudoers() -> None:
    assert looks_like_sudoers("x\n  u ALL=(root) NOPASSWD: /x")
    assert not any(map(looks_like_sudoers, ["vllm serve m --a=/x", "export A=/x", "A=b vllm", "vllm = x"]))


@pytest.mark.parametrize(
    ("text", "engine", "image", "words"),
    [
        ("FROM vllm/vllm-openai:v0.28.0\nCMD [\"--model\", \"m\"]", "vllm", "vllm/vllm-openai:v0.28.0", ("--model", "m")),
        ("ARG T=1\nFROM x/y:${T} AS a\nFROM scratch\nFROM a\nCMD vllm serve m", "vllm", "x/y:1", ("m",)),
        ("FROM --platform=linux/arm64 x\nENTRYPOINT [\"vllm\", \"serve\"]\nCMD [\"m\"]", "vllm", "x", ("m",)),
        ("from x\ncmd bash -c 'exec llama-server \\\n # c\n -m a.gguf'", "llamacpp", "x", ("-m", "a.gguf")),
        ("FROM $BASE\nCMD [broken", None, "$BASE", ()),
    ],
)  # fmt: skip
def test_the_last_stage_tells_what_an_image_starts(
    text: str, engine: str | None, image: str, words: tuple[str, ...]
) -> None:
    [recipe] = read(text, "Dockerfile")
    assert (recipe.engine, recipe.image, recipe.words) == (engine, image, words)


def test_variables_of_a_stage_reach_those_that_build_on_it() -> None:
    [recipe] = read("ENV Z=0\nFROM x AS a\nENV A=1 B='2 3'\nENV C 4 5\nFROM a\nENV A=6\nCMD vllm serve m", "Dockerfile")
    assert recipe.environment == {"A": "6", "B": "2 3", "C": "4 5"}
    assert recipe.line == 5


def test_a_dockerfile_is_known_by_name_or_first_instruction() -> None:
    assert looks_like("", "a/Dockerfile.gpu")
    assert looks_like("# x\nARG A=1\n", "x")
    assert not looks_like("FROM x import y", "x")
    assert not looks_like("vllm serve m", "x")
