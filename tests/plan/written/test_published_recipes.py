"""Recipes that other people published, read where a folder with them is named by STOKER_RECIPES."""

from __future__ import annotations

import importlib
import os
import tomllib
from pathlib import Path

import pytest

from stoker.config import parse_config
from stoker.errors import StokerError
from stoker.plan.importing import render_services, services_of
from stoker.plan.written.tree import read_tree

FOLDER = Path(os.environ.get("STOKER_RECIPES") or "/nonexistent")
READERS = {
    "sparkrun": "sparkrun", "eugr": "eugr", "nvidia": "nvidia", "vllm-recipes": "vllm_recipes", "llama-swap": "llama_swap",
    "litellm": "litellm",
}  # fmt: skip
FILES = [file for kind in READERS for file in sorted((FOLDER / kind).glob("*.y*ml"))]
WITHOUT_LAUNCH = ("registry.yaml", ".performance.yaml", "no-retries.yaml")


@pytest.mark.elsewhere(bool(FILES), "other people's recipes in the folder that STOKER_RECIPES names")
@pytest.mark.parametrize("file", FILES or [FOLDER], ids=lambda file: file.name)
def test_a_published_recipe_is_read_and_its_services_are_understood(file: Path) -> None:
    text = file.read_text()
    reader = importlib.import_module(f"stoker.plan.written.{READERS[file.parent.name]}")
    assert reader.looks_like(read_tree(text, file.name).value, file.name)
    if file.name.endswith(WITHOUT_LAUNCH):
        with pytest.raises(StokerError):
            reader.read(text, file.name)
        return
    recipes = reader.read(text, file.name)
    services = services_of(recipes, {})
    config = parse_config(tomllib.loads(render_services(services)), "stoker.toml")
    assert set(config.services) == {service.name for service in services if service.keys}
    if file.parent.name not in ("litellm", "llama-swap"):
        [recipe] = recipes
        assert recipe.engine
        assert recipe.model
        assert recipe.image
        assert not any(word.startswith("{") and not word.endswith("}") for word in recipe.words)
        assert len(config.services) == 1
