"""The syntax of units and quadlets: lines, quotes, prefixes, variables, and keys that become options."""

from __future__ import annotations

import pytest

from stoker.plan.written.quadlet import options_of
from stoker.plan.written.read import read_written
from stoker.plan.written.unit_file import collected, read_directives, specifiers, split_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a  b\tc", ("a", "b", "c")),
        ("'a b' \"c d\"e", ("a b", "c de")),
        ('"a \\"b\\" \\n" \'c\\\'d\'', ('a "b" \n', "c'd")),
        ("a\\ b \\s \\x", ("a\\ b", " ", "\\x")),
        ("'' \"\" x", ("", "", "x")),
        ("'a b", ("a b",)),
        ("a\\", ("a\\",)),
        ("", ()),
        ('--c \'{"a": "b c"}\'', ("--c", '{"a": "b c"}')),
    ],
)
def test_values_are_split_as_systemd_does(text: str, words: tuple[str, ...]) -> None:
    assert split_words(text) == words


def test_lines_are_joined_and_comments_left_out() -> None:
    text = "[A]\n# x=1\n; y=2\nB=1 \\\n  # not this\n  2 \\\n\n[C] \nD = e=f \r\nno sign\nE=\\"
    found = [(one.section, one.name, one.value, one.line) for one in read_directives(text)]
    assert found == [("A", "B", "1    2", 4), ("C", "D", "e=f", 9), ("C", "E", "", 11)]


def test_an_empty_directive_forgets_those_before_it() -> None:
    assert collected(read_directives("A=1\nA=2\nB=1\nA=\nA=3\nB=")) == {"A": ("3",)}


def test_specifiers_are_named_once() -> None:
    assert specifiers("%i %h %i 100%% %%x") == ("i", "h")


@pytest.mark.parametrize("mark", ["-", "@", "+", "!", "!!", ":", "|", "-+"])
def test_marks_before_the_program_are_no_part_of_it(mark: str) -> None:
    [recipe] = read_written(f"[Service]\nExecStart={mark}/bin/vllm serve m", "x.service")
    assert recipe.program == ("/bin/vllm", "serve")


def test_docker_in_a_unit_loses_the_unit_s_variables_but_not_those_it_hands_on() -> None:
    text = "[Service]\nEnvironment=A=1 B=2 C=3\nExecStart=/usr/bin/docker run -e B -p ${C}:${C} vllm/vllm-openai m/n\n"
    [recipe] = read_written(text, "x.service")
    assert recipe.environment == {"B": "2"}
    assert recipe.lost_environment == {"A": "1"}
    assert recipe.container["publish"] == ("3:3",)


def test_each_start_of_a_unit_is_a_launch() -> None:
    text = "[Service]\nType=oneshot\nExecStart=/bin/vllm serve a/b\nExecStart=/bin/llama-server -m c.gguf\n"
    recipes = read_written(text, "x.service")
    assert [(recipe.engine, recipe.line) for recipe in recipes] == [("vllm", 3), ("llamacpp", 4)]


def test_a_unit_that_starts_nothing_keeps_its_directives() -> None:
    [recipe] = read_written("[Unit]\nDescription=x\n[Service]\nMemoryMax=1G\n", "a/x.service")
    assert (recipe.name, recipe.engine, recipe.unit["MemoryMax"]) == ("x", None, ("1G",))
    assert recipe.unknown == ("the unit starts no program",)


@pytest.mark.parametrize(
    ("keys", "options"),
    [
        ({"ContainerName": ("a", "b")}, {"name": ("b",)}),
        ({"Volume": ("a:b", "c d:e")}, {"volume": ("a:b", "c d:e")}),
        ({"AddCapability": ("A B", "C")}, {"cap-add": ("A", "B", "C")}),
        ({"ReadOnly": ("true",), "RunInit": ("no",)}, {"read-only": ()}),
        ({"NoNewPrivileges": ("yes",)}, {"security-opt": ("no-new-privileges",)}),
        ({"PodmanArgs": ("--gpus all -v x:y", "--rm"), "Volume": ("a:b",)},
         {"volume": ("a:b", "x:y"), "gpus": ("all",), "rm": ()}),
        ({"Network": ("host",), "HealthCmd": ("curl x",)}, {"health-cmd": ("curl x",), "network": ("host",)}),
    ],
)  # fmt: skip
def test_keys_of_a_quadlet_become_options(keys: dict[str, tuple[str, ...]], options: dict[str, tuple[str, ...]]) -> None:
    assert options_of(keys) == (options, ())


def test_words_in_podman_args_that_are_no_options_are_told() -> None:
    assert options_of({"PodmanArgs": ("--rm image",)}) == ({"rm": ()}, ("`image` in PodmanArgs is no option",))


def test_a_quadlet_with_an_entrypoint_and_files_of_variables() -> None:
    text = "[Container]\nImage=x\nEntrypoint=vllm\nExec=serve a/b --port 50%%\nEnvironmentFile=/e\n[Install]\nWantedBy=x\n"
    [recipe] = read_written(text, "x.container")
    assert (recipe.engine, recipe.model, recipe.words[-1]) == ("vllm", "a/b", "50%")
    assert recipe.container == {"env-file": ("/e",), "entrypoint": ("vllm",)}
    assert any("`/e`" in said for said in recipe.unknown)
