"""Feeds the training with packed batches: random stretches of text, and conversations made on the fly."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import layout
import numpy as np
import numpy.typing as npt
import torch
from corpus import SEPARATOR
from dialogue.mixture import conversation, long_conversation, training_draw
from dialogue.render import PROMPT_WEIGHT, text_of, tokens_of
from tokenizer import CONTEXT
from tokenizers import Tokenizer
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

KINDS = ("code", "prose")
TALK_LONGEST = 1024
SHORTEST_STRETCH = 64
SHARE_OF_CODE = 0.55
LONG_TALK_SHARE = 0.12
TOOL_SHARE = 0.6
TALK_GROUP = 64

Tokens = npt.NDArray[np.uint16]


class Batch(NamedTuple):
    """Documents end to end with their targets: what the model reads, should write, and how much each token counts."""

    tokens: Tensor
    targets: Tensor
    weights: Tensor
    positions: Tensor
    starts: Tensor


@dataclass(frozen=True)
class Plan:
    """How batches of one kind are packed."""

    kind: str
    tokens: int
    seed: int
    folder: Path
    tokenizer: Path
    tool_share: float = TOOL_SHARE

    @property
    def longest(self) -> int:
        """The longest document that a batch of this kind holds."""
        return TALK_LONGEST if self.kind == "talk" else min(CONTEXT, self.tokens // 4)

    @property
    def most_documents(self) -> int:
        """How many documents a batch can hold at most; fixed, so that every batch has the same shape."""
        return max(8, self.tokens // (64 if self.kind == "talk" else 512))


@cache
def stored_tokens(folder: Path, split: str) -> tuple[Tokens, npt.NDArray[np.int64]]:
    """All tokens of one split and where each document ends."""
    stored = np.load(folder / f"{split}.npz")
    return stored["tokens"], stored["ends"]


def stretch(tokens: Tokens, ends: npt.NDArray[np.int64], rng: np.random.Generator) -> Tokens:
    """A piece of one document, from its beginning or from anywhere."""
    while True:
        position = int(rng.integers(len(tokens)))
        document = int(np.searchsorted(ends, position, side="right"))
        begin = int(ends[document - 1]) if document else 0
        first = begin if rng.random() < 0.25 else position
        piece = tokens[first : min(int(ends[document]), first + CONTEXT)]
        if len(piece) >= SHORTEST_STRETCH:
            return piece


def pack(plan: Plan, documents: Iterator[tuple[Tokens, npt.NDArray[np.float32]]]) -> Batch:
    """Lays documents end to end until the batch is full; the last one is cut."""
    tokens = np.zeros(plan.tokens + 1, np.int64)
    weights = np.zeros(plan.tokens + 1, np.float32)
    positions = np.zeros(plan.tokens + 1, np.int64)
    starts = np.full(plan.most_documents + 1, plan.tokens, np.int32)
    filled = count = 0
    while filled < plan.tokens:
        document, weight = next(documents)
        room = plan.tokens + 1 - filled if count < plan.most_documents - 1 else 0
        length = min(len(document), plan.longest, room) if room else plan.tokens + 1 - filled
        if room:
            tokens[filled : filled + length], weights[filled : filled + length] = document[:length], weight[:length]
            positions[filled : filled + length] = np.arange(length)
        weights[filled] = 0.0  # nothing predicts a document's first token
        starts[count] = filled
        filled, count = filled + length, count + 1
    return Batch(*map(torch.from_numpy, (tokens[:-1], tokens[1:], weights[1:], positions[:-1], starts)))


class Stream(IterableDataset[Batch]):
    """An endless stream of batches of one kind, fixed by its seed and the number of workers."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def __iter__(self) -> Iterator[Batch]:
        worker = get_worker_info()
        seed = self.plan.seed * 1000 + (worker.id if worker else 0)
        documents = self.talks(seed) if self.plan.kind == "talk" else self.texts(seed)
        while True:
            yield pack(self.plan, documents)

    def talks(self, seed: int) -> Iterator[tuple[Tokens, npt.NDArray[np.float32]]]:
        """Conversations that fit a batch of talk."""
        draw, tokenizer = training_draw(seed), Tokenizer.from_file(str(self.plan.tokenizer))
        while True:
            texts = [text_of(conversation(draw, self.plan.tool_share)) for _ in range(TALK_GROUP)]
            for tokens, spoken in tokens_of(texts, tokenizer):
                if len(tokens) <= TALK_LONGEST:
                    yield tokens, np.where(spoken, np.float32(1), np.float32(PROMPT_WEIGHT))

    def texts(self, seed: int) -> Iterator[tuple[Tokens, npt.NDArray[np.float32]]]:
        """Stretches of code and prose, and now and then a long conversation."""
        rng, draw, tokenizer = (
            np.random.default_rng(seed),
            training_draw(seed),
            Tokenizer.from_file(str(self.plan.tokenizer)),
        )
        while True:
            if rng.random() < LONG_TALK_SHARE:
                tokens, spoken = tokens_of([text_of(long_conversation(draw))], tokenizer)[0]
                yield tokens, np.where(spoken, np.float32(1), np.float32(PROMPT_WEIGHT))
                continue
            kind = KINDS[0] if rng.random() < SHARE_OF_CODE else KINDS[1]
            piece = stretch(*stored_tokens(self.plan.folder, f"{kind}.train"), rng)
            yield piece, np.ones(len(piece), np.float32)


def batches(plan: Plan, workers: int) -> Iterator[Batch]:
    """An endless iterator over packed batches."""
    loader = DataLoader(
        Stream(plan),
        batch_size=None,
        num_workers=workers,
        prefetch_factor=4 if workers else None,
        pin_memory=torch.cuda.is_available(),
    )
    return iter(loader)


def held_out_stretches(plan: Plan, kind: str) -> Iterator[tuple[Tokens, npt.NDArray[np.float32]]]:
    """Pieces of held-out documents, always the same ones."""
    rng = np.random.default_rng(0)
    while True:
        piece = stretch(*stored_tokens(plan.folder, f"{kind}.held_out"), rng)
        yield piece, np.ones(len(piece), np.float32)


def held_out(plan: Plan, kind: str) -> Batch:
    """One batch of held-out text of a kind."""
    return pack(plan, held_out_stretches(plan, kind))


def store(folder: Path, corpus: Path, tokenizer: Tokenizer, split: str) -> int:
    """Tokenises one split of the corpus; returns the number of tokens."""
    documents = (corpus / f"{split}.txt").read_text(encoding="utf-8").split(SEPARATOR)
    end = tokenizer.token_to_id("<|endoftext|>")
    rows = [[*row.ids, end] for row in tokenizer.encode_batch_fast(documents, add_special_tokens=False)]
    tokens = np.concatenate([np.array(row, np.uint16) for row in rows])
    np.savez_compressed(folder / f"{split}.npz", tokens=tokens, ends=np.cumsum([len(row) for row in rows]))
    return len(tokens)


def main() -> None:
    """Tokenises the corpus."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--corpus", type=Path, default=layout.CORPUS)
    parser.add_argument("--tokenizer", type=Path, default=layout.HF_FOLDERS["target"] / "tokenizer.json")
    parser.add_argument("--out", type=Path, default=layout.TOKENS)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer.from_file(str(args.tokenizer))
    for split in (f"{kind}.{side}" for kind in KINDS for side in ("train", "held_out")):
        print(f"{split}: {store(args.out, args.corpus, tokenizer, split) / 1e6:.2f} M tokens")


if __name__ == "__main__":
    main()
