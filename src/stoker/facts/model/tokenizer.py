"""Reads which tokenizer a folder holds, and a hash of its vocabulary by which a target and its draft are compared."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from stoker.facts.model.documents import read_content

LIMIT_BYTES = 256 * 1024**2  # the largest published are a sixth of it
HASH_DIGITS = 16
# Any of these is enough for Transformers to make a tokenizer of.
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "tiktoken.model")
NATIVE = "tekken.json"


class Vocabulary(NamedTuple):
    """A hash that is equal for equal tokens with equal numbers, and how many there are; None where unknown."""

    digest: str | None = None
    tokens: int | None = None


class _Added(msgspec.Struct, gc=False):
    id: int = 0
    content: str = ""


class _Model(msgspec.Struct, frozen=True):
    vocab: msgspec.Raw = msgspec.Raw(b"null")


class _Tokenizer(msgspec.Struct):
    model: _Model = _Model()
    added_tokens: list[_Added] = []


class _Entry(msgspec.Struct, gc=False):
    token_bytes: str = ""


class _Sizes(msgspec.Struct, frozen=True):
    default_vocab_size: int | None = None


class _Tekken(msgspec.Struct):
    vocab: list[_Entry]
    config: _Sizes = _Sizes()


def read_vocabulary(folder: Path, problems: list[str]) -> Vocabulary:
    """Returns the vocabulary of the first tokenizer that the folder has; a damaged file is noted."""
    for name, parse in (("tokenizer.json", _parse_tokenizer), (NATIVE, _parse_tekken)):
        content = read_content(folder / name, problems, LIMIT_BYTES)
        if content is None:
            continue
        try:
            return parse(content)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as problem:
            problems.append(f"{name} is damaged: {problem}")
    return Vocabulary()


def _parse_tokenizer(content: bytes) -> Vocabulary:
    found = msgspec.json.decode(content, type=_Tokenizer)
    raw = bytes(found.model.vocab)
    numbers: dict[str, int] = {}
    if raw.startswith(b"{"):
        numbers = msgspec.json.decode(raw, type=dict[str, int])
    elif raw.startswith(b"["):  # Unigram: a token and its score, numbered by place
        rows = msgspec.json.decode(raw, type=list[tuple[str, float]])
        numbers = {token: number for number, (token, _) in enumerate(rows)}
    numbers |= {added.content: added.id for added in found.added_tokens}
    tokens = sorted(numbers, key=numbers.__getitem__)
    return _digest("tokenizer", tokens, tokens and numbers[tokens[-1]])


def _parse_tekken(content: bytes) -> Vocabulary:
    found = msgspec.json.decode(content, type=_Tekken)
    size = found.config.default_vocab_size
    return _digest("tekken", [entry.token_bytes for entry in found.vocab], size)


def _digest(kind: str, tokens: list[str], last: object) -> Vocabulary:
    if not tokens:
        return Vocabulary()
    # The highest number tells a vocabulary with gaps from one without.
    said = _joined([*tokens, str(last)])
    return Vocabulary(f"{kind}:{hashlib.sha256(said).hexdigest()[:HASH_DIGITS]}:{len(tokens)}", len(tokens))


def _joined(words: Iterable[str]) -> bytes:
    return "\0".join(words).encode(errors="surrogatepass")
