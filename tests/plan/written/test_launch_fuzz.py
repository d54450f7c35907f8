"""No text and no words make a reader of launches fail otherwise than with a sentence, or take longer than a moment."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.errors import StokerError
from stoker.plan.written.flags import flags_of
from stoker.plan.written.mend import mended
from stoker.plan.written.quoting import say_command
from stoker.plan.written.read import read_command, read_written
from stoker.plan.written.words import recipe_of
from stoker.records import Catalog, Finding, Flag, Recipe, Scalar

CASES = Path(__file__).parent / "cases"
FOLDERS = ("scripts", "compose", "systemd", "sudoers", "dockerfiles")
TEXTS = [file.read_text() for folder in FOLDERS for file in sorted((CASES / folder).iterdir())]
NAMES = [
    "run.sh", "compose.yml", "x.service", "x.container", "sudoers", "Dockerfile", "notes.txt", "x", "",
]  # fmt: skip
PIECES = [
    "if", "then", "fi", "case", "esac", "for", "in", "do", "done", "{", "}", "(", ")", "f()", "[[", "]]", "[", "]", "&&",
    "||", ";;", "|", ";", "\n", " ", " ", "\\\n", "\\ \n", "'", '"', "`", "$(", "${", "${A:-", "${A[@]}", '"$@"', "$A",
    "A=", "A+=(", "A=x", "export A=1", "<<E", "<<-'E'", "\nE\n", ">", "2>&1", "<(", "#", "!", "vllm serve", "docker run",
    "-e A", "-v a:b", "--rm", "--name=", "image", "bash -c", "sudo", "env", "--port 8000", "$'\\n'", "\t", "é", "\x00",
    "%i", "=", "[Service]\n", "ExecStart=", "Image=", "[Container]\n", "services:\n", "  a:\n", "    image: x\n",
    "    command: [", "<<: *a", "NOPASSWD:", "ALL=(root)", "Cmnd_Alias X =", ",", "FROM x\n", "CMD [",
]  # fmt: skip
WORDS = [
    "docker", "podman", "run", "exec", "-it", "-e", "A=b", "A", "-v", "x:/y", "--gpus", "all", "--rm", "--entrypoint",
    "vllm", "serve", "image/vllm-openai", "python3", "-m", "sglang.launch_server", "--model-path", "m", "bash", "-c",
    "vllm serve x && y", "sudo", "-E", "env", "numactl", "--", "-", "--a=b", '{"a":{"b":[1]}}', "--speculative-config",
    "-1", "$@", "${X[@]}", "$OPTS", "llama-server", "-hf", "timeout", "", "é\x00",
]  # fmt: skip
pieces = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)
words = st.lists(st.sampled_from(WORDS) | st.text(max_size=6), max_size=12)
scalars: st.SearchStrategy[Scalar] = st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
targets = st.sampled_from(["--a", "--speculative-config.method", "$A", "docker:ulimit", "docker:rm", "unit:X", "grant", "x"])
CATALOG = Catalog("vllm", "0", "here", (Flag("--a", aliases=("-a",), many=True), Flag("--b", "switch")), ("prefixes",))


def read_and_print(text: str, name: str) -> None:
    with contextlib.suppress(StokerError):
        for recipe in read_written(text, name):
            say_command(mended(recipe, ()))


@given(pieces, st.sampled_from(NAMES))
def test_no_text_is_beyond_the_readers(text: str, name: str) -> None:
    read_and_print(text, name)


@given(st.text(max_size=120), st.sampled_from(NAMES))
def test_no_characters_are_beyond_the_readers(text: str, name: str) -> None:
    read_and_print(text, name)


@given(st.sampled_from(TEXTS), st.integers(0, 2000), st.integers(0, 40), pieces, st.sampled_from(NAMES))
def test_no_broken_file_is_beyond_the_readers(text: str, start: int, length: int, put: str, name: str) -> None:
    place = start % len(text)
    read_and_print(text[:place] + put + text[place + length :], name)


@given(words, st.lists(st.tuples(targets, scalars), max_size=4), st.lists(targets, max_size=3))
def test_no_command_is_beyond_the_readers(given_words: list[str], uses: list[tuple[str, Scalar]], drops: list[str]) -> None:
    finding = Finding("warn", "rule", "what", "why", "fix", use=dict(uses), drop=tuple(drops))
    with contextlib.suppress(StokerError):
        [recipe] = read_command(given_words)
        flags_of(recipe.words, CATALOG)
        printed = say_command(mended(recipe, [finding], CATALOG))
        assert isinstance(printed, str)


@given(words)
def test_an_engine_s_words_are_the_end_of_the_command(given_words: list[str]) -> None:
    recipe = recipe_of(["vllm", "serve", *given_words])
    assert recipe is not None
    assert recipe.words == tuple(given_words)


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=6))
def test_quotes_bring_every_word_back(given_words: list[str]) -> None:
    plain = [word.replace("$", "").replace("\r\n", "\n") or "x" for word in given_words]
    recipe = recipe_of(["vllm", "serve", *plain])
    assert recipe is not None
    [again] = read_written(say_command(mended(recipe, ())), "run.sh")
    assert again.words == tuple(plain)


def doubling(lines: Sequence[str]) -> str:
    return "\n".join(["A=xxxxxxxxxxxxxxxx", *lines, 'vllm serve "$A"'])


TRAPS = {
    "doubled text": doubling(["A=$A$A"] * 60),
    "doubled list": doubling(["B=(a b)", *['B+=("${B[@]}" "${B[@]}")'] * 60, 'A="${B[*]}"']),
    "nested defaults": "vllm serve " + "${A:-" * 5_000 + "}" * 5_000,
    "nested blocks": "{ a=1;" * 20_000 + "vllm serve x",
    "nested functions": "f() { " * 20_000 + "vllm serve x",
    "nested commands": "vllm serve " + "$(" * 50_000,
    "many exports": "export " + " ".join(f"A{number}=x" for number in range(5_000)) + "\nvllm serve x" + "\nls" * 20_000,
    "many appends": "A=()\n" + "A+=($Z)\n" * 20_000 + 'vllm serve "${A[@]}"',
    "bash in bash": "bash -c '" * 2_000 + "vllm serve x",
    "patterns": "A=" + "a" * 400 + "\n" + "B=${A##*b*a*c}\n" * 10_000 + "vllm serve x",
}


@pytest.mark.parametrize("name", TRAPS)
def test_a_script_made_to_swell_is_read_in_a_moment(name: str) -> None:
    started = time.process_time()
    read_and_print(TRAPS[name][:290_000], "run.sh")
    assert time.process_time() - started < 10


def test_a_compose_file_made_to_swell_is_read_in_a_moment() -> None:
    anchors = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))]
    bomb = "\n".join([*anchors, "services: {a: {image: x, command: *a29, environment: *a29, ports: *a29}}"])
    brackets = json.dumps({"services": {"a": {"image": "${" * 100_000}}})
    started = time.process_time()
    read_and_print(bomb, "compose.yml")
    read_and_print(brackets, "compose.yml")
    assert time.process_time() - started < 10


def test_sudoers_made_to_swell_are_read_in_a_moment() -> None:
    aliases = [f"Cmnd_Alias A{n} = {', '.join([f'A{n + 1}'] * 30)}" for n in range(12)]
    text = "\n".join([*aliases, "Cmnd_Alias LOOP = LOOP, LOOP", "u ALL=NOPASSWD: A0, LOOP"])
    started = time.process_time()
    [recipe] = read_written(text, "sudoers")
    assert len(recipe.grants) <= 2_000
    assert "only the first 2,000 grants were read" in recipe.unknown
    assert time.process_time() - started < 10


def test_a_recipe_of_nothing_prints_nothing() -> None:
    assert say_command(mended(Recipe("sudoers", grants=("x",)), ())) == ""
