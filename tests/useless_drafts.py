"""Drafts that foresee less or nothing: the demo's own, whose words mean other words."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

from gguf import GGUFReader

WORDS = ("token_embd.weight", "output.weight")
NAMED = ("embed_tokens.weight", "lm_head.weight")
HALF = 2


def write_useless_gguf(good: Path, useless: Path, each: int = 1) -> None:
    """Copies a GGUF with the halves of its vocabulary exchanged: it drafts as before, and always something else.

    With two, every second word is exchanged, and a part of its drafts is still accepted.
    """
    shutil.copyfile(good, useless)
    changed = 0
    for tensor in GGUFReader(useless, "r+").tensors:
        if tensor.name in WORDS:
            rows = tensor.data
            half = len(rows) // HALF
            first = rows[:half:each].copy()
            rows[:half:each] = rows[half : half * HALF : each]
            rows[half : half * HALF : each] = first
            changed += 1
    assert changed, "the model has no words"


def write_useless_folder(good: Path, useless: Path) -> None:
    """The same for a folder with model.safetensors."""
    shutil.copytree(good, useless)
    file = useless / "model.safetensors"
    raw = bytearray(file.read_bytes())
    (size,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + size])
    named = [one for name, one in header.items() if name.endswith(NAMED)]
    assert named, "the model has no words"
    for one in named:
        begin, end = (8 + size + at for at in one["data_offsets"])
        middle = (begin + end) // HALF
        raw[begin:end] = raw[middle:end] + raw[begin:middle]
    file.write_bytes(raw)
