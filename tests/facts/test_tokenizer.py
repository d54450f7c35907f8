"""Vocabularies: equal ones have equal hashes, however their files are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoints import tokenizer
from stoker.facts.model.tokenizer import Vocabulary, _parse_tokenizer, read_vocabulary


def vocabulary(folder: Path, document: Any, name: str = "tokenizer.json", **layout: Any) -> Vocabulary:
    (folder / name).write_text(json.dumps(document, **layout))
    return read_vocabulary(folder, [])


def test_neither_layout_nor_order_nor_merges_change_the_hash(tmp_path: Path) -> None:
    plain = vocabulary(tmp_path, tokenizer(20))
    vocab = {f"t{number}": number for number in reversed(range(20))}
    turned = tokenizer(20, model={"type": "BPE", "merges": [["t1", "t2"]], "vocab": vocab}, normalizer={"type": "NFC"})
    assert vocabulary(tmp_path, turned, indent=4) == plain
    assert plain.tokens == 20
    assert plain.digest is not None
    assert plain.digest.startswith("tokenizer:")


@pytest.mark.parametrize(
    "changed",
    [
        tokenizer(21),
        tokenizer(20, added_tokens=[{"id": 20, "content": "<think>", "special": False}]),
        tokenizer(20, model={"type": "BPE", "vocab": {f"t{number}": 19 - number for number in range(20)}}),
        tokenizer(20, model={"type": "BPE", "vocab": {f"t{number}": number * 2 for number in range(20)}}),
    ],
)
def test_another_token_or_another_number_does(tmp_path: Path, changed: dict[str, Any]) -> None:
    assert vocabulary(tmp_path, changed) != vocabulary(tmp_path, tokenizer(20))


def test_a_token_that_was_added_is_the_same_as_one_that_was_there(tmp_path: Path) -> None:
    added = tokenizer(20, added_tokens=[{"id": 20, "content": "t20"}])
    assert vocabulary(tmp_path, added) == vocabulary(tmp_path, tokenizer(21))


def test_a_unigram_vocabulary_is_numbered_by_place(tmp_path: Path) -> None:
    rows = [[f"t{number}", -float(number)] for number in range(20)]
    assert vocabulary(tmp_path, tokenizer(model={"type": "Unigram", "vocab": rows})) == vocabulary(tmp_path, tokenizer(20))


def test_tekken_has_a_hash_of_its_own(tmp_path: Path) -> None:
    tekken = {"config": {"default_vocab_size": 9}, "vocab": [{"rank": 0, "token_bytes": "YQ==", "token_str": "a"}]}
    found = vocabulary(tmp_path, tekken, "tekken.json")
    assert found.tokens == 1
    assert found.digest is not None
    assert found.digest.startswith("tekken:")
    longer = {**tekken, "config": {"default_vocab_size": 10}}
    assert vocabulary(tmp_path, longer, "tekken.json") != found


def test_the_hub_tokenizer_goes_first(tmp_path: Path) -> None:
    vocabulary(tmp_path, {"vocab": [{"token_bytes": "YQ=="}]}, "tekken.json")
    assert str(vocabulary(tmp_path, tokenizer(3)).digest).startswith("tokenizer:")


@pytest.mark.parametrize("content", ["{", "3", '{"model": {"vocab": 3}, "added_tokens": 4}', "[" * 10**5, '{"vocab": {}}'])
@pytest.mark.parametrize("name", ["tokenizer.json", "tekken.json"])
def test_a_damaged_tokenizer_is_named_and_has_no_hash(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    problems: list[str] = []
    assert read_vocabulary(tmp_path, problems) == (None, None)
    assert [problem.partition(" is damaged: ")[0] for problem in problems] in ([name], [])


def test_a_folder_without_a_tokenizer_has_no_hash(tmp_path: Path) -> None:
    assert read_vocabulary(tmp_path, []) == (None, None)


@given(st.dictionaries(st.text(max_size=4), st.integers(0, 9), max_size=6))
def test_any_vocabulary_can_be_hashed(vocab: dict[str, int]) -> None:
    document = json.dumps({"model": {"vocab": vocab}})
    assert _parse_tokenizer(document.encode()).tokens == (len(vocab) or None)
