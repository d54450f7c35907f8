"""Repositories in the hub's cache, found without asking the hub."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from checkpoints import LLAMA, WHOLE, linear, write_checkpoint
from stoker.errors import Refused
from stoker.facts.model.hub import find_cache, find_snapshot, is_hub_id, name_of
from stoker.facts.model.read import read_model
from support import fails, write_gguf


def fetched(home: Path, revision: str, modified_s: int = 0, name: str = "org/name") -> Path:
    repository = home / "hub" / f"models--{name.replace('/', '--')}"
    snapshot = write_checkpoint(repository / "snapshots" / revision, linear("a", 8, 8), LLAMA, **WHOLE)
    os.utime(snapshot, (modified_s, modified_s))
    return snapshot


def test_an_id_is_read_from_the_files_that_main_names(tmp_path: Path) -> None:
    wanted, newer = fetched(tmp_path, "a" * 40, 100), fetched(tmp_path, "b" * 40, 200)
    references = wanted.parent.parent / "refs"
    references.mkdir()
    (references / "main").write_text("a" * 40)
    model = read_model(Path("org/name"), {"HF_HOME": str(tmp_path)})
    assert (model.path, model.name) == (str(wanted), "name")
    assert (model.repository, model.revision) == ("org/name", "a" * 40)
    (references / "main").write_text("c" * 40)  # fetched and removed again
    assert find_snapshot("org/name", {"HF_HOME": str(tmp_path)}) == newer


@pytest.mark.parametrize("reference", ["", "../../..", "/etc", "a/b", "\0", "x" * 500])
def test_a_reference_never_leads_out_of_the_snapshots(tmp_path: Path, reference: str) -> None:
    snapshot = fetched(tmp_path, "abc")
    (snapshot.parent.parent / "refs").mkdir()
    (snapshot.parent.parent / "refs" / "main").write_text(reference)
    assert find_snapshot("org/name", {"HF_HOME": str(tmp_path)}) == snapshot


def test_a_path_inside_a_cache_tells_its_repository_wherever_the_cache_is(tmp_path: Path) -> None:
    assert name_of(Path("/ai/models--org--name-x/snapshots/abc/model.gguf")) == ("org/name-x", "abc")
    assert name_of(Path("/ai/models--gpt2/snapshots/abc")) == ("gpt2", "abc")
    assert name_of(Path("/ai/models--org--name/blobs/abc")) == (None, None)
    assert name_of(Path("/ai/models--org--name")) == (None, None)
    snapshot = fetched(tmp_path, "abc")
    assert read_model(snapshot).repository == "org/name"


def test_a_gguf_in_a_cache_keeps_its_repository(tmp_path: Path) -> None:
    snapshot = tmp_path / "hub" / "models--org--name-GGUF" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    write_gguf(snapshot / "a.gguf")
    model = read_model(Path("org/name-GGUF"), {"HF_HOME": str(tmp_path)})
    assert (model.repository, model.revision, model.format) == ("org/name-GGUF", "abc", "gguf")


def test_an_id_that_was_never_fetched_is_refused_with_the_command_that_fetches_it(tmp_path: Path) -> None:
    for environment in ({"HF_HOME": str(tmp_path)}, {}):
        with fails(Refused, "there is no model org/name", "in the hub's cache", "`stoker fetch org/name` fetches it"):
            read_model(Path("org/name"), environment)


def test_what_is_more_likely_a_path_is_spoken_of_as_one(tmp_path: Path) -> None:
    with fails(Refused, "there is no model at org/name.gguf", "check the path"):
        read_model(Path("org/name.gguf"), {"HF_HOME": str(tmp_path)})


def test_a_folder_of_that_name_goes_before_the_hub(tmp_path: Path) -> None:
    fetched(tmp_path, "abc")
    here = write_checkpoint(tmp_path / "org" / "name", linear("b", 8, 8), LLAMA, **WHOLE)
    assert read_model(here, {"HF_HOME": str(tmp_path)}).repository is None


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"HF_HUB_CACHE": "/a", "HF_HOME": "/b", "HOME": "/c"}, "/a"),
        ({"HUGGINGFACE_HUB_CACHE": "/a", "HF_HOME": "/b"}, "/a"),
        ({"HF_HOME": "/b", "XDG_CACHE_HOME": "/d", "HOME": "/c"}, "/b/hub"),
        ({"XDG_CACHE_HOME": "/d", "HOME": "/c"}, "/d/huggingface/hub"),
        ({"HOME": "/c"}, "/c/.cache/huggingface/hub"),
        ({"HF_HUB_CACHE": "", "HOME": "/c"}, "/c/.cache/huggingface/hub"),
        ({}, None),
    ],
)
def test_the_cache_is_where_the_hubs_own_library_looks(environment: dict[str, str], folder: str | None) -> None:
    assert find_cache(environment) == (Path(folder) if folder else None)


@pytest.mark.parametrize(
    ("word", "is_id"),
    [
        ("mistralai/Mistral-Small-4-119B-2603-NVFP4", True), ("a/b", True), ("a", False), ("a/b/c", False), ("/a/b", False),
        ("../b", False), ("a/..", False), ("a/b..c", False), ("./a", False), ("a/", False), ("a b/c", False),
        ("a/b\n", False), ("x" * 97 + "/a", False), ("o--rg/a", False),
    ],
)  # fmt: skip
def test_what_looks_like_an_id(word: str, is_id: bool) -> None:
    assert is_hub_id(word) is is_id


def test_a_repository_that_is_no_id_is_not_looked_for(tmp_path: Path) -> None:
    environment: dict[str, Any] = {"HF_HOME": str(tmp_path)}
    assert find_snapshot("../../etc", environment) is None
