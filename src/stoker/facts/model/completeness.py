"""Says which files a folder of weights lacks, for whom, and where they are to be had."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from stoker.facts.model.readme import Card, guess_base
from stoker.facts.model.tokenizer import NATIVE, TOKENIZERS
from stoker.records import MissingFile, ModelLayout

CONFIG, PARAMS, TEMPLATE = "config.json", "params.json", "chat_template.jinja"
TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
WHY = {
    CONFIG: "it says what kind of model the weights are",
    TOKENIZER: "without it text cannot be turned into this model's tokens",
    TOKENIZER_CONFIG: "it names the tokenizer's class and its special tokens",
    TEMPLATE: "without it there is no telling how the model was taught to chat",
}


class Contents(NamedTuple):
    """What a folder holds, as far as completeness goes."""

    names: frozenset[str]
    absent_shards: tuple[str, ...]
    has_template: bool
    is_draft_head: bool
    repository: str | None
    card: Card


def find_missing(contents: Contents) -> tuple[MissingFile, ...]:
    """Returns the files without which the model does not load, or not in every engine. Pure."""
    repository = contents.repository
    return (*(_shard(name, repository) for name in contents.absent_shards), *_from_base(_lacking(contents), contents))


def _shard(name: str, repository: str | None) -> MissingFile:
    return MissingFile(name, repository, "a part of the weights: the fetch did not end, or left it out")


def _lacking(contents: Contents) -> Iterator[str]:
    names = contents.names
    if CONFIG not in names:
        yield CONFIG
    if contents.is_draft_head:  # it speaks through its target's tokenizer
        return
    if not names & set(TOKENIZERS):
        yield TOKENIZER
    if TOKENIZER_CONFIG not in names:
        yield TOKENIZER_CONFIG
    # Mistral's own tokenizer file brings the way to chat along, in the library that reads it.
    if not contents.has_template and NATIVE not in names:
        yield TEMPLATE


def _from_base(names: Iterable[str], contents: Contents) -> Iterator[MissingFile]:
    stated = contents.card.base_model
    guess = None if stated else guess_base(contents.repository)
    source = stated or guess or contents.repository
    native = CONFIG not in contents.names and PARAMS in contents.names
    for name in names:
        why = WHY[name]
        if native and name in (CONFIG, TOKENIZER, TOKENIZER_CONFIG):
            why += "; loaders of Mistral's own format do without it"
        yield MissingFile(name, source, why, is_guess=guess is not None)


def find_layouts(contents: Contents) -> tuple[ModelLayout, ...]:
    """Returns the ways to load the folder for which nothing is missing. Pure."""
    if contents.absent_shards:
        return ()
    names, head = contents.names, contents.is_draft_head
    layouts: list[ModelLayout] = []
    if CONFIG in names and (head or names & set(TOKENIZERS)):
        layouts.append("transformers")
    if PARAMS in names and (head or NATIVE in names):
        layouts.append("mistral")
    return tuple(layouts)
