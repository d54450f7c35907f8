"""Files that belong to a format and hold no launch, or one that is not read."""

from __future__ import annotations

import importlib

import pytest

from stoker.errors import Refused, StokerError
from stoker.plan.written import eugr, litellm, llama_swap, nvidia, sparkrun, vllm_recipes
from stoker.plan.written.tree import read_tree
from support import fails

WINDOWS = """
schema_version: 4
title: Tiny
hardware: geforce-rtx
platform: {os: windows, execution: native}
serve: {command: "vllm serve example/Tiny-7B `\\n  --port 8000"}
"""


def test_a_recipe_for_windows_is_recognised_and_refused() -> None:
    assert nvidia.looks_like(read_tree(WINDOWS, "f").value, "f")
    with fails(Refused, "f is written for Windows", "PowerShell", "`linux` folder"):
        nvidia.read(WINDOWS, "f")


def test_measurements_lead_to_the_recipe_beside_them() -> None:
    text = "schema_version: 1\nrecipe_sha256: abc\nprofiles: [{id: x}]\n"
    assert nvidia.looks_like(read_tree(text, "f").value, "f")
    with fails(StokerError, "f holds measurements and no launch", "recipe.yaml"):
        nvidia.read(text, "f")


@pytest.mark.parametrize(
    ("reader", "text", "says"),
    [
        ("sparkrun", "registries: [{name: a, recipes: b}]", "lists where recipes lie"),
        ("sparkrun", "runtime: vllm", "names no model"),
        ("eugr", "recipe_version: '1'", "has no command"),
        ("nvidia", "schema_version: 4\nserve: {label: x}", "has no serve.command"),
        ("vllm_recipes", "model: {}\nvariants: {}", "names no model"),
        ("llama_swap", "models: {}", "has no models"),
        ("litellm", "model_list: []\nrouter_settings: {fallbacks: [{a: [b]}]}", "falls back to `b`"),
    ],
)
@pytest.mark.parametrize("empty", [False, True])
def test_a_file_without_a_launch_is_told_as_that(reader: str, text: str, says: str, empty: bool) -> None:
    with fails(StokerError, *([] if empty else [says])):
        importlib.import_module(f"stoker.plan.written.{reader}").read("" if empty else text, "f")


@pytest.mark.parametrize("tree", [None, 5, [], "text", {}, {"model": 10**5000}, {"recipe_version": 10**5000}, {1: 2}])
@pytest.mark.parametrize("reader", [eugr, litellm, llama_swap, nvidia, sparkrun, vllm_recipes])
def test_other_files_look_like_none_of_them(tree: object, reader: object) -> None:
    assert not reader.looks_like(tree, "f")  # type: ignore[attr-defined]


def test_the_version_decides_how_braces_are_read() -> None:
    text = "name: a\nmodel: a/b\ncontainer: c\ncommand: vllm serve a/b --x '{{}}'\n"
    [second] = sparkrun.read(text, "f")
    [first] = eugr.read(f"recipe_version: 1\n{text}", "f")
    assert second.words[-1] == "{{}}"
    assert first.words[-1] == "{}"


def test_an_unknown_version_is_told() -> None:
    [recipe] = sparkrun.read("recipe_version: 3\nmodel: a/b\ncommand: vllm serve a/b\n", "f")
    assert "`recipe_version` 3 is unknown; the recipe was read as version 2" in recipe.unknown
    [recipe] = nvidia.read("schema_version: 5\nhardware: dgx-spark\nserve: {command: vllm serve a/b}\n", "f")
    assert "`schema_version` 5 is unknown; it was read as version 4" in recipe.unknown


def test_a_command_that_starts_no_engine_is_still_told() -> None:
    [recipe] = sparkrun.read("model: a/b\ncontainer: c\ncommand: ./start.sh --fast\n", "f")
    assert (recipe.engine, recipe.program, recipe.words) == (None, ("./start.sh",), ("--fast",))
    assert recipe.unknown == ("`./start.sh` is no engine that Stoker starts",)
