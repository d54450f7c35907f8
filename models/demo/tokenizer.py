"""Trains the byte-level BPE tokenizer and writes it in the form that transformers and its readers load."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import layout
from corpus import SEPARATOR
from dialogue.mixture import conversation, training_draw
from dialogue.render import text_of
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 4096
CONTEXT = 4096
CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MARKUP = tuple(f"<{slash}{name}>" for name in ("think", "tools", "tool_call", "tool_response") for slash in ("", "/"))
# llama.cpp knows this split by the name "qwen2"; single digits make arithmetic learnable by a tiny model.
PRE_TOKENIZER = "qwen2"
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# Merges are learnt from these parts, so none joins a letter to anything else: a word is then the same tokens after a
# space and after a quotation mark, which makes copying it into JSON easier. It costs tokens: 1.35 times as many for
# held-out code and prose as with merges learnt from the parts above.
LEARNT_FROM = r"\p{L}+|\p{N}|[^\p{L}\p{N}]+"
SAMPLE_CHARS = 6_000_000
SAMPLE_CONVERSATIONS = 4000


def new_tokenizer(split: str) -> Tokenizer:
    """An untrained tokenizer with the split and the byte alphabet in place, and no normaliser: llama.cpp has none."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(split), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def train(texts: Iterator[str]) -> Tokenizer:
    """A tokenizer of exactly `VOCABULARY` entries; the added tokens come first."""
    added = [AddedToken(t, special=True, normalized=False) for t in CONTROL]
    added += [AddedToken(t, special=False, normalized=False) for t in MARKUP]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=added,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer = new_tokenizer(LEARNT_FROM)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.pre_tokenizer = new_tokenizer(SPLIT).pre_tokenizer
    return tokenizer


def tokenizer_config() -> dict[str, object]:
    """What transformers needs beside `tokenizer.json`; the chat template lies in a file of its own."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": CONTEXT,
        "bos_token": None,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "add_bos_token": False,
        "clean_up_tokenization_spaces": False,
    }


def save(tokenizer: Tokenizer, folder: Path) -> None:
    """Writes tokenizer.json, tokenizer_config.json and the chat template."""
    folder.mkdir(parents=True, exist_ok=True)
    stored = json.loads(tokenizer.to_str())
    for token in stored["added_tokens"]:
        token["special"] = token["content"] in CONTROL  # the trainer calls all special, and special ones are not shown
    (folder / "tokenizer.json").write_text(json.dumps(stored, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config(), indent=2) + "\n")
    (folder / "chat_template.jinja").write_text(layout.TEMPLATE.read_text())


def sample_texts(corpus: Path) -> Iterator[str]:
    """Documents of both kinds, about `SAMPLE_CHARS` each so that neither wins, and some conversations."""
    for kind in ("code", "prose"):
        documents = (corpus / f"{kind}.train.txt").read_text(encoding="utf-8").split(SEPARATOR)
        stride = max(1, sum(map(len, documents)) // SAMPLE_CHARS)
        yield from documents[::stride]
    draw = training_draw(0)
    yield from (text_of(conversation(draw, 0.5)) for _ in range(SAMPLE_CONVERSATIONS))


def main() -> None:
    """Trains on the collected corpus and on sample dialogues."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--corpus", type=Path, default=layout.CORPUS)
    parser.add_argument("--out", type=Path, default=layout.HF_FOLDERS["target"])
    args = parser.parse_args()
    tokenizer = train(sample_texts(args.corpus))
    save(tokenizer, args.out)
    print(f"{tokenizer.get_vocab_size()} entries in {args.out}")


if __name__ == "__main__":
    main()
