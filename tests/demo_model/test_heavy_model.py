"""The heavy twin of the demo model: its weights in one corner, zeros beside them, and hardly any room on the disk."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from checkpoints import write_checkpoint
from heavy_model import BESIDE, write_heavy

CONFIG = {"hidden_size": 8, "intermediate_size": 4, "num_hidden_layers": 1}
SHAPES = {"model.norm.weight": (8,), "layers.0.mlp.up_proj.weight": (4, 8), "layers.0.mlp.down_proj.weight": (8, 4)}


def weights(folder: Path) -> dict[str, np.ndarray]:
    """Returns a checkpoint's tensors."""
    raw = (folder / "model.safetensors").read_bytes()
    begin = 8 + int.from_bytes(raw[:8], "little")
    table = {name: row for name, row in json.loads(raw[8:begin]).items() if name != "__metadata__"}
    spans = {name: [begin + end for end in row["data_offsets"]] for name, row in table.items()}
    return {name: np.frombuffer(raw[slice(*spans[name])], np.uint16).reshape(table[name]["shape"]) for name in table}


def test_what_is_added_is_zero_and_what_was_there_stays_in_its_corner(tmp_path: Path) -> None:
    model = write_checkpoint(tmp_path / "small", {name: ("BF16", shape) for name, shape in SHAPES.items()}, CONFIG)
    file = model / "model.safetensors"
    head_bytes = 8 + int.from_bytes(file.read_bytes()[:8], "little")
    file.write_bytes(file.read_bytes()[:head_bytes] + np.arange(1, 73, dtype=np.uint16).tobytes())
    for name in BESIDE:
        (model / name).write_text("{}")
    heavy = write_heavy(tmp_path / "heavy", model, 48 * 10**6)
    assert json.loads((heavy / "config.json").read_text())["intermediate_size"] == 4 + 2 * 10**6
    for name, wide in weights(heavy).items():
        small = weights(model)[name]
        corner = tuple(slice(length) for length in small.shape)
        assert (wide[corner] == small).all(), name
        assert np.count_nonzero(wide) == small.size
    file = heavy / "model.safetensors"
    assert file.stat().st_size > 60 * 10**6
    assert file.stat().st_blocks * 512 < 10**6
