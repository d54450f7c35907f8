"""`stoker fetch` against a hub on loopback: what comes, where it lies, and what a plan makes of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from home import Home
from releases import BASE, EXTRA, NVFP4, REPOSITORY, add_incomplete, add_release, sha256, snapshot
from small_hub import Hub
from support import write_gguf


def test_a_model_is_fetched_whole_and_a_check_of_its_name_finds_it(user: Home, hub: Hub, tmp_path: Path) -> None:
    folder, commit = add_release(hub, tmp_path)
    view = user.json("fetch", REPOSITORY)
    (model,) = view["models"]
    assert (model["repository"], model["revision"], model["asked"]) == (REPOSITORY, commit, "main")
    assert model["path"] == str(snapshot(user, commit))
    for file in folder.iterdir():
        if file.name not in ("pytorch_model.bin", "picture.png"):
            assert (snapshot(user, commit) / file.name).read_bytes() == file.read_bytes()
    check = user.json("check", REPOSITORY)
    assert (check["is_whole"], check["model"]["revision"]) == (True, commit)


def test_what_no_engine_needs_is_left_out_and_said_and_all_brings_it(user: Home, hub: Hub, tmp_path: Path) -> None:
    _, commit = add_release(hub, tmp_path)
    said = user.run("fetch", REPOSITORY).stdout
    assert "left out: weights for other frameworks" in said
    assert "left out: pictures and archives" in said
    assert not (snapshot(user, commit) / "pytorch_model.bin").exists()
    user.run("fetch", REPOSITORY, "--all")
    assert (snapshot(user, commit) / "pytorch_model.bin").read_bytes() == EXTRA["pytorch_model.bin"]


def test_the_cache_is_laid_out_as_the_hubs_own_library_does_it(user: Home, hub: Hub, tmp_path: Path) -> None:
    folder, commit = add_release(hub, tmp_path)
    user.run("fetch", REPOSITORY)
    shard = min(folder.glob("*.safetensors"))
    link = snapshot(user, commit) / shard.name
    assert link.readlink() == Path(f"../../blobs/{sha256(shard)}")
    assert (snapshot(user, commit).parent.parent / "refs/main").read_text() == commit
    assert not list(snapshot(user, commit).parent.parent.glob("blobs/*.incomplete"))


def test_the_hubs_own_library_takes_the_cache_for_its_own(user: Home, hub: Hub, tmp_path: Path) -> None:
    _, commit = add_release(hub, tmp_path)
    user.run("fetch", REPOSITORY)
    ask = (
        "from huggingface_hub import scan_cache_dir, snapshot_download as get; found = scan_cache_dir();"
        f"print(get('{REPOSITORY}', local_files_only=True), found.warnings, [one.repo_id for one in found.repos])"
    )
    done = subprocess.run((sys.executable, "-c", ask), env=user.environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{snapshot(user, commit)} [] ['{REPOSITORY}']\n"


def test_a_dry_run_says_what_would_come_and_brings_nothing(user: Home, hub: Hub, tmp_path: Path) -> None:
    folder, commit = add_release(hub, tmp_path)
    view = user.json("fetch", REPOSITORY, "--dry-run")
    left = sum(one["size_bytes"] for one in view["models"][0]["left_out"])
    assert view["need_bytes"] + left == sum(file.stat().st_size for file in folder.iterdir())
    assert view["free_bytes"] > 0
    assert not snapshot(user, commit).exists()
    assert hub.paths("store") == []


def test_what_is_there_is_verified_and_not_fetched_again(user: Home, hub: Hub, tmp_path: Path) -> None:
    add_release(hub, tmp_path)
    user.run("fetch", REPOSITORY)
    asked = len(hub.paths("store"))
    view = user.json("fetch", REPOSITORY)
    assert view["models"][0]["fetched_bytes"] == 0
    assert len(hub.paths("store")) == asked


def test_a_file_that_was_damaged_on_disk_is_fetched_again(user: Home, hub: Hub, tmp_path: Path) -> None:
    folder, commit = add_release(hub, tmp_path)
    user.run("fetch", REPOSITORY)
    shard = min(folder.glob("*.safetensors"))
    blob = (snapshot(user, commit) / shard.name).resolve()
    blob.write_bytes(b"\0" * blob.stat().st_size)
    assert "is on disk and not what the hub lists (its SHA-256" in user.run("fetch", REPOSITORY).stderr
    assert sha256(snapshot(user, commit) / shard.name) == sha256(shard)


def test_a_branch_that_moved_is_fetched_anew_and_what_is_the_same_is_kept(user: Home, hub: Hub, tmp_path: Path) -> None:
    folder, first = add_release(hub, tmp_path)
    user.run("fetch", REPOSITORY)
    sent = hub.sent.total()
    (folder / "README.md").write_text("# another text\n")
    second = hub.add_folder(REPOSITORY, folder)
    user.run("fetch", REPOSITORY)
    assert hub.sent.total() - sent == len("# another text\n")
    assert user.json("check", REPOSITORY)["model"]["revision"] == second
    assert user.json("fetch", REPOSITORY, "--revision", first)["models"][0]["revision"] == first
    assert user.json("check", REPOSITORY)["model"]["revision"] == second


def test_a_service_brings_its_model_and_its_draft(user: Home, hub: Hub, tmp_path: Path) -> None:
    _, model = add_release(hub, tmp_path)
    _, draft = add_release(hub, tmp_path, "org/draft", shards=1)
    user.configure(f'[service.tiny]\nmodel = "{REPOSITORY}"\ndraft = "org/draft"\n')
    found = user.json("fetch", "tiny")["models"]
    assert [(one["role"], one["revision"]) for one in found] == [("model", model), ("draft", draft)]


def test_a_folder_takes_the_files_and_keeps_their_origin(user: Home, hub: Hub, tmp_path: Path) -> None:
    _, commit = add_release(hub, tmp_path)
    target = tmp_path / "disk two" / "tiny"
    view = user.json("fetch", REPOSITORY, "--to", str(target))
    assert view["models"][0]["path"] == str(target)
    model = user.json("check", str(target))["model"]
    assert (model["repository"], model["revision"]) == (REPOSITORY, commit)
    assert not [file for file in target.rglob("*") if file.is_symlink()]
    user.run("fetch", REPOSITORY, "--to", str(target))


def test_a_folder_with_files_of_yours_is_left_alone(user: Home, hub: Hub, tmp_path: Path) -> None:
    add_release(hub, tmp_path)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "config.json").write_text("mine")
    said = user.run("fetch", REPOSITORY, "--to", str(mine), code=3).stderr
    assert "would overwrite" in said
    assert (mine / "config.json").read_text() == "mine"


def test_one_gguf_of_several_is_named_by_its_quantisation(user: Home, hub: Hub, tmp_path: Path) -> None:
    files = {f"tiny-{kind}.gguf": write_gguf(tmp_path / kind).read_bytes() for kind in ("Q4_K_M", "Q8_0")}
    hub.add("org/tiny-GGUF", files)
    said = user.run("fetch", "org/tiny-GGUF", code=2).stderr
    assert "org/tiny-GGUF:Q4_K_M" in said
    assert "org/tiny-GGUF:Q8_0" in said
    model = user.json("fetch", "org/tiny-GGUF:q8_0")["models"][0]
    assert model["path"].endswith("tiny-Q8_0.gguf")
    assert user.json("check", "org/tiny-GGUF:Q8_0")["model"]["path"] == model["path"]
    assert "has no Q2_K" in user.run("fetch", "org/tiny-GGUF:Q2_K", code=2).stderr


def test_files_that_a_release_lacks_are_taken_from_its_base_with_consent(user: Home, hub: Hub, tmp_path: Path) -> None:
    commit, base_commit, base = add_incomplete(hub, tmp_path)
    done = user.run("fetch", NVFP4, code=1)
    assert "lacks tokenizer.json, tokenizer_config.json" in done.stdout
    assert f"`stoker fetch {NVFP4} --yes`" in done.stdout
    assert user.run("check", NVFP4, code=1)
    model = user.json("fetch", NVFP4, "--yes")["models"][0]
    assert {(one["name"], one["revision"]) for one in model["completed"]} == {
        ("tokenizer.json", base_commit), ("tokenizer_config.json", base_commit),
    }  # fmt: skip
    assert (Path(model["path"]) / "tokenizer.json").read_bytes() == (base / "tokenizer.json").read_bytes()
    check = user.json("check", NVFP4)
    assert (check["is_whole"], check["model"]["path"]) == (True, model["path"])
    assert (check["model"]["repository"], check["model"]["revision"]) == (NVFP4, commit)
    assert not (snapshot(user, commit, NVFP4) / "tokenizer.json").exists()
    assert not snapshot(user, base_commit, BASE).exists()


def test_a_completed_model_stays_complete_without_asking_again(user: Home, hub: Hub, tmp_path: Path) -> None:
    add_incomplete(hub, tmp_path)
    first = user.json("fetch", NVFP4, "--yes")["models"][0]
    again = user.json("fetch", NVFP4)["models"][0]
    assert (again["path"], again["completed"]) == (first["path"], first["completed"])


def test_a_completed_model_is_planned_by_its_hub_name(user: Home, hub: Hub, tmp_path: Path) -> None:
    commit, _, _ = add_incomplete(hub, tmp_path)
    path = user.json("fetch", NVFP4, "--yes")["models"][0]["path"]
    plan = user.json("plan", NVFP4, "--on", "gb10", "--engine", "vllm")["plan"]
    assert (plan["model_path"], commit in json.dumps(plan)) == (path, True)


def test_in_a_folder_the_missing_files_join_the_others(user: Home, hub: Hub, tmp_path: Path) -> None:
    add_incomplete(hub, tmp_path)
    target = tmp_path / "own"
    user.run("fetch", NVFP4, "--to", str(target), "--yes")
    assert user.json("check", str(target))["is_whole"] is True


@pytest.mark.parametrize("words", [["nothing"], ["--service", "gone"], []])
def test_what_is_no_hub_name_and_no_service_is_wrong_use(user: Home, words: list[str]) -> None:
    assert "there is no" in user.run("fetch", *words, code=2).stderr


def test_a_repository_of_pickles_is_refused(user: Home, hub: Hub) -> None:
    hub.add("org/old", {"pytorch_model.bin": b"x" * 100, "config.json": b"{}"})
    assert "pickled" in user.run("fetch", "org/old", code=3).stderr


@pytest.mark.parametrize("name", ["../evil.json", "/etc/evil.json", "a/../../evil.json", "a\\b.json", "a//b.json"])
def test_a_hub_cannot_write_outside(user: Home, hub: Hub, tmp_path: Path, name: str) -> None:
    hub.add("org/evil", {"model.safetensors": b"x" * 100, name: b"{}"})
    said = user.run("fetch", "org/evil", code=1).stderr
    assert "cannot be used" in said
    assert not list(tmp_path.rglob("evil*"))


def test_a_model_that_nothing_loads_is_fetched_and_told(user: Home, hub: Hub) -> None:
    hub.add("org/odd", {"model.safetensors": b"x" * 100, "config.json": b"{}"})
    done = user.run("fetch", "org/odd", code=1)
    assert "is damaged" in done.stdout
    assert "no engine that Stoker knows" in done.stdout


def test_a_folder_of_the_same_name_is_said_to_go_before_the_hub(user: Home, hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "org" / "tiny").mkdir(parents=True)
    said = user.run("fetch", REPOSITORY, code=2, cwd=tmp_path).stderr
    assert "a folder of that name lies here" in said
