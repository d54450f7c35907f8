"""Reads launches that people wrote: commands, scripts, containers, units and recipes. Pure: text in, records out."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from pathlib import PurePath
from types import ModuleType

from stoker.errors import WrongUse
from stoker.plan.written import dockerfile, scripts, sudoers, systemd
from stoker.plan.written.words import recipe_of
from stoker.records import Recipe

Read = Callable[[str, str], tuple[Recipe, ...]]
# What each kind is called, and the module that reads it; loaded when YAML is met, since parsing it takes a library.
# The order matters where one format's keys are among another's: the most telling keys come first.
YAML_KINDS = {
    "an NVIDIA recipe": "nvidia",
    "a recipe of vllm-project": "vllm_recipes",
    "a llama-swap config": "llama_swap",
    "a LiteLLM config": "litellm",
    "a compose file": "compose",
    "a recipe of spark-vllm-docker": "eugr",
    "a sparkrun recipe": "sparkrun",
}
OTHER_KINDS = ("a shell script", "a systemd unit or quadlet", "a sudoers file", "a Dockerfile")
SHEBANG = re.compile(r"#!.*\b(ba|da|z|k)?sh\b")
YAML_KEY = re.compile(r"[\w-]+:(\s|$)")
MOST_CHARACTERS = 4_000_000


def read_written(text: str, name: str) -> tuple[Recipe, ...]:
    """Returns the launches in a file, whose kind its name and content tell; raises WrongUse where no kind fits.

    Like all readers it raises StokerError where the file is of its kind and holds no launch.
    """
    if len(text) > MOST_CHARACTERS:
        raise WrongUse(f"{name} is longer than {MOST_CHARACTERS:,} characters", next_step="give the file with the launch")
    text = text.removeprefix("\ufeff")
    path = PurePath(name)
    if SHEBANG.match(text) or path.suffix in (".sh", ".bash"):
        return scripts.read(text, name)
    if path.suffix in (".yaml", ".yml"):
        return _read_yaml(text, name)
    if path.name.startswith("sudoers") or "sudoers.d" in path.parts:
        return sudoers.read(text, name)
    if systemd.looks_like(text):
        return systemd.read(text, name)
    return _by_content(text)(text, name) if not dockerfile.looks_like(text, name) else dockerfile.read(text, name)


def _by_content(text: str) -> Read:
    lines = (line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#"))
    if YAML_KEY.match(next(lines, "")):
        return _read_yaml
    return sudoers.read if sudoers.looks_like(text) else scripts.read


def _read_yaml(text: str, name: str) -> tuple[Recipe, ...]:
    tree = _module("tree").read_tree(text, name).value
    for module in map(_module, YAML_KINDS.values()):
        if module.looks_like(tree, name):
            found: tuple[Recipe, ...] = module.read(text, name)
            return found
    raise WrongUse(
        f"{name} is YAML of no kind that is known here", next_step=f"give {', '.join([*YAML_KINDS, *OTHER_KINDS])}"
    )


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"{__package__}.{name}")


def read_command(words: Sequence[str]) -> tuple[Recipe, ...]:
    """Returns the launch that the words of one command are; raises WrongUse where they start no engine and no container."""
    try:
        found = recipe_of(words, source="the command")
    except RecursionError:
        found = None
    if found is None:
        said = " ".join(words)[:80] or "no words at all"
        raise WrongUse(
            f"`{said}` starts no engine that is known here",
            next_step="give `docker run ...`, `vllm serve ...`, `python -m sglang.launch_server ...` or `llama-server ...`",
        )
    return (found,)
