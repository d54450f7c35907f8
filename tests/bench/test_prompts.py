"""Prompts of exactly so many tokens, by tokenizers that differ as much as real ones do."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from stoker.bench.prompts import CONTENTS, Passage, fit, make_head, refuse_impossible, units_of
from stoker.errors import Refused, WrongUse
from support import fails

TOKENIZERS: dict[str, Callable[[str], int]] = {
    "bytes": lambda text: len(text.encode()),
    "words and spaces": lambda text: len(re.findall(r"\s+|\w+|[^\w\s]", text)),
    "up to four letters": lambda text: len(re.findall(r"\s?\w{1,4}|\s|[^\w\s]", text)),
    "pairs": lambda text: -(-len(text) // 2),
}


@settings(max_examples=25, deadline=None)
@given(
    content=some.sampled_from(CONTENTS),
    target=some.integers(60, 3000),
    seed=some.integers(0, 99),
    name=some.sampled_from(sorted(TOKENIZERS)),
)
def test_a_prompt_is_exactly_as_long_as_asked(content: str, target: int, seed: int, name: str) -> None:
    count = TOKENIZERS[name]
    passage = Passage(content, Random(seed), make_head(Random(seed)))
    found = fit(passage, target, target, lambda text: 11 + count(text))
    # Of pairs of letters some lengths need a letter that no filler has alone.
    assert target - (name == "pairs") <= found.tokens <= target
    assert found.tokens == 11 + count(found.text)


def test_a_good_estimate_needs_few_looks() -> None:
    looks = 0
    count = TOKENIZERS["up to four letters"]
    costs = [count(f"\n\n{unit}") for unit in units_of("code")]

    def look(text: str) -> int:
        nonlocal looks
        looks += 1
        return count(text)

    for seed in range(20):
        fit(Passage("code", Random(seed), make_head(Random(seed)), costs), 1500, 1500, look)
    assert looks <= 20 * 8


def test_a_passage_is_endless_and_does_not_begin_again_the_same_way() -> None:
    units = len(units_of("prose"))
    text = Passage("prose", Random(1)).text(18_000)
    parts = text.strip().split("\n\n")
    assert len(parts) > 2 * units
    assert parts[:units] != parts[units : 2 * units]
    assert sorted(parts[:units]) == sorted(units_of("prose"))


@pytest.mark.parametrize("content", CONTENTS)
def test_our_texts_hold_many_parts_none_twice(content: str) -> None:
    units = units_of(content)
    assert len(units) == len(set(units)) >= 40
    # 4096 tokens before a prompt of 512, of letters that make 4.5 to a token at most, without a part that comes again.
    assert sum(map(len, units)) > 4.5 * (4096 + 512)


def test_heads_differ_and_are_equally_long() -> None:
    heads = {make_head(Random(seed)) for seed in range(500)}
    assert len(heads) == 500
    assert len({len(head) for head in heads}) == 1


def test_a_file_of_the_users_is_taken_by_its_paragraphs(tmp_path: Path) -> None:
    file = tmp_path / "own.txt"
    file.write_text("One.\n\nTwo\nlines.\n \n\nThree.")
    assert units_of(str(file)) == ("One.", "Two\nlines.", "Three.")
    with fails(WrongUse, "cannot be read", "code, prose, chat"):
        units_of(str(tmp_path / "missing.txt"))
    (tmp_path / "empty.txt").write_text(" \n")
    with fails(WrongUse, "holds no text"):
        units_of(str(tmp_path / "empty.txt"))


def test_what_cannot_be_is_refused_with_the_reason() -> None:
    refuse_impossible([(0, 512, 128)], 640, 20)
    refuse_impossible([(0, 512, 128)], None, 20)
    with fails(Refused, "a past of 4096, a prompt of 512 and 128 new tokens", "its context has 4735"):
        refuse_impossible([(4096, 512, 128)], 4735, 20)
    with fails(Refused, "take 20 tokens", "20 tokens or more"):
        refuse_impossible([(0, 19, 1)], None, 20)
