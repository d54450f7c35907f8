"""Feeds the header readers with whatever atheris comes up with; run by hand where it is installed.

    pip install atheris && python tests/facts/fuzz_headers.py -max_total_time=300 corpus/

Without it, `python tests/facts/fuzz_headers.py --plain 100000` changes valid files at random for as many rounds. Any
exception but Refused, and any round of more than ten seconds, is a finding.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent.parent))

from checkpoints import GPT_OSS, WHOLE, write_checkpoint, write_shard
from stoker.errors import Refused
from stoker.facts.model.read import read_model
from stoker.facts.model.template import template_features

SEED = {"a.weight": ("BF16", (4, 8)), "model.layers.0.mlp.experts.b": ("U8", (3,))}


def read_hostile(folder: Path, content: bytes) -> None:
    """Reads the bytes as weights, as a GGUF, and as each of the files beside the weights."""
    for name in ("model.safetensors", "model.gguf"):
        file = folder / name
        file.write_bytes(content)
        expect_refusal(lambda file=file: read_model(file))  # type: ignore[misc]
        file.unlink()
    beside = ("config.json", "params.json", "model.safetensors.index.json", "tokenizer.json", "tekken.json", "README.md")
    for name in beside:
        checkpoint = write_checkpoint(folder / "whole", SEED, GPT_OSS, **WHOLE)
        (checkpoint / name).write_bytes(content)
        expect_refusal(lambda checkpoint=checkpoint: read_model(checkpoint))  # type: ignore[misc]
        (checkpoint / name).unlink()
    template_features(content.decode(errors="replace"))


def expect_refusal(read: Callable[[], object]) -> None:
    """Lets Refused pass, and nothing else."""
    try:
        read()
    except Refused:
        return


def run_plain(rounds: int) -> None:
    """Changes bytes of valid files at random, always in the same way."""
    chance = random.Random(3)
    with TemporaryDirectory() as name:
        folder = Path(name)
        checkpoint = write_checkpoint(folder / "seed", SEED, GPT_OSS, shards=2, **WHOLE)
        seeds = [file.read_bytes() for file in sorted(checkpoint.iterdir())]
        seeds.append(write_shard(folder / "seed.safetensors", SEED).read_bytes())
        for _ in range(rounds):
            content = bytearray(chance.choice(seeds))
            for _ in range(chance.randint(1, 8)):
                place = chance.randrange(len(content))
                content[place : place + chance.randint(0, 3)] = chance.randbytes(chance.randint(0, 3))
            read_hostile(folder, bytes(content))


def main() -> None:
    """Runs atheris, or the plain rounds that were asked for."""
    if "--plain" in sys.argv:
        run_plain(int(sys.argv[-1]))
        return
    import atheris  # type: ignore[import-not-found,import-untyped,unused-ignore]

    with TemporaryDirectory() as name:
        atheris.instrument_all()
        atheris.Setup(sys.argv, lambda content: read_hostile(Path(name), content))
        atheris.Fuzz()


if __name__ == "__main__":
    main()
