"""What a folder lacks: shards that are cut, absent or not as the index says, and files that another repository has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from checkpoints import LLAMA, MISTRAL_4, WHOLE, linear, llama, mistral_4, write_checkpoint, write_raw, write_shard
from stoker.errors import Refused
from stoker.facts.model.read import read_model
from stoker.facts.model.readme import guess_base, read_card
from stoker.facts.model.weights import find_weights
from stoker.records import MissingFile, Model
from support import fails

SMALL: dict[str, Any] = {**LLAMA, "num_hidden_layers": 2, "vocab_size": 1024}
FIRST, LAST = "model-00001-of-00003.safetensors", "model-00003-of-00003.safetensors"
NATIVE: dict[str, Any] = {"params__json": {**MISTRAL_4, "n_layers": 1}, "tekken__json": {"vocab": [{"token_bytes": "YQ=="}]}}


def sharded(folder: Path) -> Path:
    return write_checkpoint(folder / "m", llama(SMALL), SMALL, shards=3, **WHOLE)


def names(model: Model) -> list[str]:
    return [file.name for file in model.missing]


def test_a_shard_that_is_not_there_is_named_and_its_weight_still_counted(tmp_path: Path) -> None:
    folder = sharded(tmp_path)
    whole = read_model(folder)
    (folder / LAST).unlink()
    model = read_model(folder)
    assert names(model) == [LAST]
    assert "a part of the weights" in model.missing[0].why
    assert model.layouts == ()
    # The index tells the sum of all tensors; headers and names are a little more.
    assert 0 <= whole.file_bytes - model.file_bytes < 10_000
    assert (model.parameters or 0) < (whole.parameters or 0)


def test_a_link_into_a_hubs_cache_that_leads_nowhere_is_a_missing_file(tmp_path: Path) -> None:
    folder = sharded(tmp_path)
    for name in (LAST, "tokenizer.json"):
        (folder / name).unlink()
        (folder / name).symlink_to(tmp_path / "blobs" / "gone")
    assert names(read_model(folder)) == [LAST, "tokenizer.json"]


@pytest.mark.parametrize(
    ("extra_bytes", "said"),
    [(-1, f"{FIRST} is cut short: its tensors end at byte "), (7, f"{FIRST} has 7 bytes after its last tensor")],
)
def test_a_shard_of_another_length_is_named(tmp_path: Path, extra_bytes: int, said: str) -> None:
    folder = sharded(tmp_path)
    whole = read_model(folder)
    with (folder / FIRST).open("r+b") as file:
        file.truncate((folder / FIRST).stat().st_size + extra_bytes)
    model = read_model(folder)
    assert [problem.startswith(said) for problem in model.problems] == [True]
    assert (model.file_bytes, model.parameters) == (whole.file_bytes, whole.parameters)


def test_a_shard_with_a_broken_header_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    folder = sharded(tmp_path)
    (folder / FIRST).write_bytes(b"\xff" * 100)
    model = read_model(folder)
    assert len(model.problems) == 1
    assert model.problems[0].startswith(f"{FIRST} is damaged: its header claims 18,446,744,073,709,551,615 bytes")
    assert model.parameters
    assert model.missing == ()


def test_a_shard_that_is_not_as_the_index_says_is_named_with_what_differs(tmp_path: Path) -> None:
    folder = sharded(tmp_path)
    write_shard(folder / FIRST, linear("surprise", 8, 8))
    lacks, holds = read_model(folder).problems
    assert lacks.startswith(f"{FIRST} lacks lm_head.weight, model.embed_tokens.weight, ")
    assert lacks.endswith(" and 3 more, which the index puts there")
    assert holds == f"{FIRST} holds surprise.weight, which the index does not put there"


def test_a_tensor_in_two_files_is_named(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m", linear("a", 8, 8), SMALL, **WHOLE)
    (folder / "model.safetensors").rename(folder / "one.safetensors")
    write_shard(folder / "two.safetensors", linear("a", 8, 8) | linear("b", 8, 8))
    problems = read_model(folder).problems
    assert "two.safetensors holds a.weight, which another file holds too" in problems
    assert any("no model.safetensors.index.json" in problem for problem in problems)


def test_numbers_in_the_names_tell_what_is_missing_without_an_index(tmp_path: Path) -> None:
    folder = sharded(tmp_path)
    (folder / "model.safetensors.index.json").unlink()
    (folder / FIRST).unlink()
    assert names(read_model(folder)) == [FIRST]


def test_an_index_of_files_that_were_not_fetched_gives_way_to_weights_that_were(tmp_path: Path) -> None:
    folder = sharded(tmp_path)
    for file in folder.glob("model-*.safetensors"):
        file.unlink()
    write_checkpoint(folder, linear("layers.0.a", 8, 8), stem="consolidated", **NATIVE)
    assert read_model(folder).parameters == 64


@pytest.mark.parametrize(
    "index",
    ["", "{", "[]", "{}", '{"weight_map": 3}', '{"weight_map": {"a": 3}}', "[" * 100_000,
     '{"weight_map": {}, "metadata": {"total_size": "x"}}'],
)  # fmt: skip
def test_a_damaged_index_is_named_and_the_files_are_taken_by_their_names(tmp_path: Path, index: str) -> None:
    folder = sharded(tmp_path)
    whole = read_model(folder).parameters
    (folder / "model.safetensors.index.json").write_text(index)
    model = read_model(folder)
    assert model.parameters == whole
    assert model.problems[0].startswith("model.safetensors.index.json is damaged")


def test_an_index_never_leads_out_of_its_folder(tmp_path: Path) -> None:
    outside = write_shard(tmp_path / "secret.safetensors", linear("s", 8, 8))
    folder = write_checkpoint(tmp_path / "m", linear("a", 8, 8), SMALL, **WHOLE)
    placed = {"a.weight": "model.safetensors", "s.weight": "../secret.safetensors", "t.weight": str(outside)}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": placed}))
    model = read_model(folder)
    assert (model.parameters, model.problems) == (64, ("its index names files outside the folder, which are not read",))


@pytest.mark.parametrize("size", [-1, 2**70, 1e300, None])
def test_a_total_size_of_nonsense_counts_nothing(tmp_path: Path, size: float | None) -> None:
    folder = sharded(tmp_path)
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    (folder / "model.safetensors.index.json").write_text(json.dumps({**index, "metadata": {"total_size": size}}))
    (folder / LAST).unlink()
    assert read_model(folder).file_bytes == sum(file.stat().st_size for file in folder.glob("*.safetensors"))


def test_the_nvfp4_release_without_its_config_names_what_to_copy_and_whence(tmp_path: Path) -> None:
    card = "---\nlicense: apache-2.0\nbase_model:\n- mistralai/Mistral-Small-4-119B-2603\n---\n# Mistral Small 4\n"
    folder = write_checkpoint(tmp_path / "m", mistral_4(1, 2), stem="consolidated", README__md=card, **NATIVE)
    model = read_model(folder)
    assert names(model) == ["config.json", "tokenizer.json", "tokenizer_config.json"]
    assert {(file.take_from, file.is_guess) for file in model.missing} == {("mistralai/Mistral-Small-4-119B-2603", False)}
    assert all(file.why.endswith("loaders of Mistral's own format do without it") for file in model.missing)
    said = "it has params.json and no config.json, so only a loader of Mistral's own format takes it"
    assert [problem.startswith(said) for problem in model.problems] == [True]
    assert (model.layouts, model.licence) == (("mistral",), "apache-2.0")
    assert (model.has_chat_template, model.template_features) == (False, ())


def test_what_was_copied_is_missed_no_more(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m", mistral_4(1, 2), LLAMA, stem="consolidated", **WHOLE, **NATIVE)
    model = read_model(folder)
    assert (model.missing, model.problems, model.layouts) == ((), (), ("transformers", "mistral"))


def test_without_a_card_the_base_is_a_guess_and_said_to_be_one(tmp_path: Path) -> None:
    snapshot = tmp_path / "models--mistralai--Mistral-Small-4-119B-2603-NVFP4" / "snapshots" / "abc"
    model = read_model(write_checkpoint(snapshot, mistral_4(1, 2), stem="consolidated", **NATIVE))
    assert {(file.take_from, file.is_guess) for file in model.missing} == {("mistralai/Mistral-Small-4-119B-2603", True)}
    assert (model.repository, model.revision) == ("mistralai/Mistral-Small-4-119B-2603-NVFP4", "abc")
    assert model.name == "Mistral-Small-4-119B-2603-NVFP4"


def test_a_folder_with_neither_card_nor_name_does_not_know_whence(tmp_path: Path) -> None:
    model = read_model(write_checkpoint(tmp_path / "m", linear("a", 8, 8)))
    assert names(model) == ["config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"]
    assert {file.take_from for file in model.missing} == {None}
    assert model.layouts == ()


def test_a_shard_is_to_be_had_where_the_others_came_from(tmp_path: Path) -> None:
    snapshot = tmp_path / "models--org--name" / "snapshots" / "abc"
    write_checkpoint(snapshot, llama(SMALL), SMALL, shards=3, **WHOLE)
    (snapshot / LAST).unlink()
    assert read_model(snapshot).missing == (
        MissingFile(LAST, "org/name", "a part of the weights: the fetch did not end, or left it out"),
    )


@pytest.mark.parametrize(
    ("repository", "base"),
    [
        ("mistralai/Mistral-Small-4-119B-2603-NVFP4", "mistralai/Mistral-Small-4-119B-2603"),
        ("org/Llama-3.1-8B-Instruct-FP8-dynamic", "org/Llama-3.1-8B-Instruct"),
        ("org/Qwen3-8B-AWQ", "org/Qwen3-8B"),
        ("org/name-quantized.w4a16", "org/name-quantized"),
        ("org/name-GPTQ-Int4", "org/name"),
        ("org/name-bnb-4bit", "org/name"),
        ("org/Qwen3-8B", None),
        ("org/fp8-tools", None),
        ("org/-FP8", None),
        (None, None),
    ],
)
def test_the_base_is_guessed_from_a_quantisers_suffix(repository: str | None, base: str | None) -> None:
    assert guess_base(repository) == base


@pytest.mark.parametrize(
    ("text", "licence", "base"),
    [
        ("---\nlicense: mit\nbase_model: org/name\n---\n", "mit", "org/name"),
        ("---\r\nlicense: mit\r\nbase_model:\r\n  - org/name\r\n  - org/other\r\n---\r\n", "mit", "org/name"),
        ('---\nlicense: "mit"\nbase_model: [org/name, org/other]\n---\n', "mit", "org/name"),
        ("---\nlicense: other\nlicense_name: nvidia-open\n---\n", "nvidia-open", None),
        ("---\nlicense: other\n---\n", "other", None),
        ("---\nlicense:\nbase_model: not a repository\n---\n", None, None),
        ("---\nbase_model: ../../etc/passwd\n---\n", None, None),
        ("license: mit\nbase_model: org/name\n", None, None),
        ("---\nlicense: mit\n", None, None),
        ("", None, None),
    ],
)
def test_a_model_card_tells_licence_and_base(tmp_path: Path, text: str, licence: str | None, base: str | None) -> None:
    (tmp_path / "README.md").write_bytes(text.encode())
    assert read_card(tmp_path, []) == (licence, base)


def test_a_card_of_enormous_length_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "README.md").open("wb") as file:
        file.truncate(10 * 1024**3)
    problems: list[str] = []
    assert read_card(tmp_path, problems) == (None, None)
    assert problems == ["README.md has 10,737,418,240 bytes, and no such file is that long"]


def test_files_that_are_no_files_are_not_waited_for(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m", linear("a", 8, 8), SMALL, **WHOLE)
    for name in ("config.json", "tokenizer.json", "chat_template.jinja"):
        (folder / name).unlink()
        (folder / name).mkdir()
    assert names(read_model(folder)) == ["config.json", "tokenizer.json", "chat_template.jinja"]


def test_an_unreadable_name_is_found_and_its_header_refused(tmp_path: Path) -> None:
    write_raw(tmp_path / "model.safetensors", b"[]", 0)
    assert find_weights(tmp_path, []).files == (tmp_path / "model.safetensors",)
    with fails(Refused, "is damaged"):
        read_model(tmp_path)
