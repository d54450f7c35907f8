"""No input makes a reader of recipes fail otherwise than with a sentence."""

from __future__ import annotations

import contextlib
import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.errors import StokerError
from stoker.plan.importing import render_services, services_of
from stoker.plan.written.tree import read_tree

READERS = ("sparkrun", "eugr", "nvidia", "vllm_recipes", "llama_swap", "litellm")
CASES = Path(__file__).parent / "cases"
TEXTS = [file.read_text() for file in sorted(CASES.glob("*/*.yaml"))]
KEYS = [
    "recipe_version", "name", "model", "container", "command", "defaults", "env", "mods", "executor_config",
    "metadata", "registries", "runtime", "min_nodes", "schema_version", "hardware", "platform", "os", "serve", "port",
    "additional_commands", "setup_command", "profiles", "checkpoint", "topology", "limitations", "meta", "variants",
    "default", "features", "args", "modes", "hardware_overrides", "dgx_spark_gb10", "extra_args", "docker_image",
    "nvidia", "base_env", "models", "cmd", "proxy", "macros", "groups", "members", "matrix", "routing", "router",
    "startPort", "apiKeys", "aliases", "hooks", "PORT", "model_list", "model_name", "litellm_params", "api_base",
    "api_key", "router_settings", "fallbacks", "litellm_settings", "num_retries",
]  # fmt: skip
COMMANDS = [
    "vllm serve a/b --port {port}",
    "docker run -it x bash",
    "${PORT} llama-server -m x",
    "{",
    "'",
    "a\\\n",
    "<<E\nx",
    "1",
    "2",
]
leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(COMMANDS) | st.text(max_size=8)
trees = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=25,
)


def read_all(text: str) -> None:
    """Reads a text with every reader, whatever it looks like, and imports what was found."""
    with contextlib.suppress(StokerError):
        tree = read_tree(text, "f").value
        for name in READERS:
            reader: Any = importlib.import_module(f"stoker.plan.written.{name}")
            reader.looks_like(tree, "f")
            with contextlib.suppress(StokerError):
                render_services(services_of(reader.read(text, "f"), {}))


@given(st.dictionaries(st.sampled_from(KEYS), trees, max_size=8))
def test_no_tree_is_beyond_the_readers(tree: dict[str, object]) -> None:
    read_all(json.dumps(tree))


@given(st.text(max_size=200))
def test_no_text_is_beyond_the_readers(text: str) -> None:
    read_all(text)


@given(st.sampled_from(TEXTS), st.data())
def test_no_damaged_recipe_is_beyond_the_readers(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 40)))
    read_all(
        text[:start]
        + data.draw(st.text(max_size=6) | st.sampled_from(["'", '"', "{", "}", "$", "\n", "- ", ": "]))
        + text[end:]
    )


@pytest.mark.parametrize("text", ["", "\ufeff", "model: 1", "a: " * 50])
def test_next_to_nothing_is_not_beyond_the_readers(text: str) -> None:
    read_all(text)
