"""The models that lie on a machine: what the hub's library fetched, and what people keep in folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from stoker.facts.model.found import MOST_FOLDERS, find_models

NOWHERE: tuple[str, ...] = ()


def put(folder: Path, *files: str) -> Path:
    for name in files:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return folder


def found(home: Path, *roots: Path) -> tuple[str, ...]:
    return find_models({"HOME": str(home)}, tuple(map(str, roots)))


def test_a_fetched_repository_is_found_by_its_name(tmp_path: Path) -> None:
    hub = tmp_path / ".cache/huggingface/hub"
    put(hub / "models--Qwen--Qwen3-8B/snapshots/abc", "config.json", "model.safetensors")
    put(hub / "models--org--only-a-tokenizer/snapshots/abc", "tokenizer.json")
    put(hub / "models--org--never-arrived", "refs/main")
    put(hub / "datasets--org--data/snapshots/abc", "model.safetensors")
    assert found(tmp_path) == ("Qwen/Qwen3-8B",)


def test_each_quantisation_is_found_and_no_projector(tmp_path: Path) -> None:
    snapshot = tmp_path / ".cache/huggingface/hub/models--u--Q-GGUF/snapshots/abc"
    put(snapshot, "Q-Q4_K_M.gguf", "mmproj-F16.gguf", "BF16/Q-BF16-00001-of-00002.gguf", "BF16/Q-BF16-00002-of-00002.gguf")
    assert found(tmp_path) == ("u/Q-GGUF:BF16", "u/Q-GGUF:Q4_K_M")


def test_the_caches_own_variables_count(tmp_path: Path) -> None:
    put(tmp_path / "elsewhere/models--a--b/snapshots/1", "model.safetensors")
    assert find_models({"HOME": "/nowhere", "HF_HUB_CACHE": str(tmp_path / "elsewhere")}, NOWHERE) == ("a/b",)


def test_folders_of_models_are_looked_through(tmp_path: Path) -> None:
    put(
        tmp_path / "models",
        "small.gguf",
        "Qwen3-8B/config.json",
        "Qwen3-8B/model.safetensors",
        ".trash/old.gguf",
        "notes.txt",
    )
    put(tmp_path / ".lmstudio/models/maker/name", "name-Q8_0.gguf")
    root = put(tmp_path / "srv", "big-00001-of-00003.gguf", "big-00002-of-00003.gguf", "big-00003-of-00003.gguf")
    assert found(tmp_path, root) == (
        str(tmp_path / "models/small.gguf"),
        str(tmp_path / "models/Qwen3-8B"),
        str(tmp_path / ".lmstudio/models/maker/name/name-Q8_0.gguf"),
        str(root / "big-00001-of-00003.gguf"),
    )


def test_a_folder_that_is_too_deep_or_a_link_back_ends_the_search(tmp_path: Path) -> None:
    root = put(tmp_path / "srv", "a/b/c/d/near.gguf", "a/b/c/d/e/far.gguf")
    (root / "again").symlink_to(root)
    assert found(tmp_path, root) == (str(root / "a/b/c/d/near.gguf"),)


def test_a_link_into_a_whole_disk_is_given_up(tmp_path: Path) -> None:
    for number in range(MOST_FOLDERS + 5):
        (tmp_path / f"srv/{number:05}").mkdir(parents=True)
    put(tmp_path / "srv/99999", "last.gguf")
    assert found(tmp_path, tmp_path / "srv") == ()


@pytest.mark.parametrize("environment", [{}, {"HOME": "/nowhere"}])
def test_a_machine_without_any_has_none(environment: dict[str, str]) -> None:
    assert find_models(environment, NOWHERE) == ()
