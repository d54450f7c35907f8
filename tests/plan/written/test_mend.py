"""Mending a launch by findings, and printing it so that a shell reads it back."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from stoker.plan.written.mend import mended
from stoker.plan.written.quoting import say_command
from stoker.plan.written.read import read_command, read_written
from stoker.records import Catalog, Finding, Flag


def finding(**change: Any) -> Finding:
    """Returns a finding with what mends it."""
    return Finding("forbid", "a-rule", "what", "why", "fix", **change)


def mend(text: str, **change: Any) -> str:
    """Returns a command with one finding applied, in one line."""
    [recipe] = read_command(shlex.split(text))
    return shlex.join(mended(recipe, [finding(**change)]))


@pytest.mark.parametrize(
    ("text", "change", "wanted"),
    [
        ("vllm serve m --a b --c", {}, "vllm serve m --a b --c"),
        ("vllm serve m --a b --c", {"drop": ("--a",)}, "vllm serve m --c"),
        ("vllm serve m --a_b 1 2 --c", {"drop": ("--a-b",)}, "vllm serve m --c"),
        ("vllm serve m --a b", {"use": {"--a": "x y"}}, "vllm serve m --a 'x y'"),
        ("vllm serve m --a_b=1 --c", {"use": {"--a-b": 0.5}}, "vllm serve m --a_b=0.5 --c"),
        ("vllm serve m --a 1 --a 2", {"use": {"--a": 3}}, "vllm serve m --a 1 --a 3"),
        ("vllm serve m", {"use": {"--a": 3, "--b": True, "--c": False}}, "vllm serve m --a 3 --b"),
        ("vllm serve m --a x", {"use": {"--a": True}}, "vllm serve m --a"),
        ("vllm serve m --b", {"use": {"--b": False}}, "vllm serve m"),
        ("vllm serve m --s '{\"k\": 1}'", {"use": {"--s.k": 2}}, "vllm serve m --s '{\"k\": 2}'"),
        ("vllm serve m --s '{\"k\": 1, \"l\": 2}'", {"drop": ("--s.k",)}, "vllm serve m --s '{\"l\": 2}'"),
        ("vllm serve m --s.k 1", {"drop": ("--s",)}, "vllm serve m"),
        ("A=1 vllm serve m", {"drop": ("$A",), "use": {"$B": "2"}}, "B=2 vllm serve m"),
        ("docker run --rm --restart always vllm/vllm-openai m", {"drop": ("docker:rm",)},
         "docker run --restart always vllm/vllm-openai m"),
        ("docker run -v a:b --net=host vllm/vllm-openai m", {"use": {"docker:network": "bridge", "docker:init": True}},
         "docker run --volume a:b --network bridge --init vllm/vllm-openai m"),
        ("docker run --ulimit memlock=1 --ulimit stack=1 vllm/vllm-openai m", {"use": {"docker:ulimit": "memlock=-1"}},
         "docker run --ulimit stack=1 --ulimit memlock=-1 vllm/vllm-openai m"),
        ("A=1 docker run vllm/vllm-openai m", {"use": {"$A": "1"}}, "docker run --env A=1 vllm/vllm-openai m"),
        ("A=1 docker run -e A -e B vllm/vllm-openai m", {}, "docker run --env A=1 --env B vllm/vllm-openai m"),
        ("sudo podman run --entrypoint vllm x serve m", {"use": {"--a": 1}},
         "sudo podman run --entrypoint vllm x serve m --a 1"),
        ("docker run --entrypoint bash x -c 'vllm serve m'", {"use": {"--a": 1}},
         "docker run --entrypoint vllm x serve m --a 1"),
        ("docker run x bash -c 'pip install y && vllm serve m'", {"use": {"--a": 1}},
         "docker run x bash -c 'pip install y && vllm serve m --a 1'"),
        ("docker run --entrypoint bash x -c 'pip install y && vllm serve m'", {},
         "docker run --entrypoint bash x -c 'pip install y && vllm serve m'"),
        ("docker exec -d node vllm serve m", {"drop": ("unit:MemoryMax", "grant")},
         "docker exec --detach node vllm serve m"),
        ("sudo env A=1 vllm serve m", {"use": {"$A": 2, "$B": 3}}, "sudo env A=2 env B=3 vllm serve m"),
    ],
)  # fmt: skip
def test_a_finding_changes_what_it_names_and_nothing_else(text: str, change: dict[str, Any], wanted: str) -> None:
    assert mend(text, **change) == wanted


def test_an_alias_is_mended_where_it_stands() -> None:
    catalog = Catalog("vllm", "1", "tests", (Flag("--tensor-parallel-size", "int", aliases=("-tp",)), Flag("--x", "switch")))
    [recipe] = read_command(["vllm", "serve", "--x", "m", "-tp", "2"])
    words = mended(recipe, [finding(use={"--tensor-parallel-size": 1}, drop=("--x",))], catalog)
    assert words == ("vllm", "serve", "m", "-tp", "1")


def test_a_command_is_printed_with_a_flag_a_line() -> None:
    words = ("A=b c", "vllm", "serve", "m", "--a", "b c", "--d", '{"e": "f"}', "-1", "--g=$H/i j", "$@", "--k", "$(cat l)")
    assert say_command(words, frozenset({"$H", "$@", "$(cat l)"})) == "\n".join(
        [
            "A='b c' vllm serve m \\",
            "  --a 'b c' \\",
            '  --d \'{"e": "f"}\' \\',
            "  -1 \\",
            '  --g="$H"\'/i j\' "$@" \\',
            '  --k "$(cat l)"',
        ]
    )


def test_a_module_stays_with_its_python() -> None:
    words = ("/bin/python3.12", "-m", "sglang.launch_server", "--model-path", "m")
    assert say_command(words) == "/bin/python3.12 -m sglang.launch_server \\\n  --model-path m"
    assert say_command(("llama-server", "-m", "x", "-c", "1")) == "llama-server \\\n  -m x \\\n  -c 1"


def test_a_compose_service_is_printed_as_the_command_that_does_the_same() -> None:
    service = "image: vllm/vllm-openai, network_mode: host, entrypoint: [vllm, serve], command: [m, --x]"
    text = f"services: {{a: {{{service}, environment: {{A: b}}}}}}"
    [recipe] = read_written(text, "compose.yml")
    assert say_command(mended(recipe, ())) == (
        "docker run \\\n  --network host \\\n  --entrypoint vllm \\\n  --env A=b vllm/vllm-openai serve m \\\n  --x"
    )
