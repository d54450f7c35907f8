"""The demo model with wide layers whose further weights are zero: it says the same, and each step reads gigabytes.

The demo model itself is so small that a GPU waits for the processor, and one that others use too changes its pace by half
within minutes. Of this one a step takes what the memory takes to be read, as of the models that people use.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, BinaryIO

from checkpoints import BITS, Tensors, write_checkpoint

FILE = "model.safetensors"
BESIDE = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json")
# What a wide layer has more of, by which of its sides: its gate and its values by rows, and what adds them up by columns.
WIDENED = {"gate_proj": 0, "up_proj": 0, "down_proj": 1}


def write_heavy(folder: Path, model: Path, parameters: int) -> Path:
    """Writes a model with about so many parameters more, all of them zero, as holes that take no room on the disk."""
    config: dict[str, Any] = json.loads((model / "config.json").read_text())
    inner = parameters // (len(WIDENED) * config["num_hidden_layers"] * config["hidden_size"]) // 64 * 64
    with (model / FILE).open("rb") as read:
        table, begin = _head(read)
        tensors: Tensors = {name: (row["dtype"], _wider(name, row["shape"], inner)) for name, row in table.items()}
        write_checkpoint(folder, tensors, config | {"intermediate_size": config["intermediate_size"] + inner})
        with (folder / FILE).open("r+b") as written:
            wide, wide_begin = _head(written)
            for name, row in table.items():
                read.seek(begin + row["data_offsets"][0])
                written.seek(wide_begin + wide[name]["data_offsets"][0])
                _copy(read, written, row, wide[name])
    for name in BESIDE:
        shutil.copy(model / name, folder)
    return folder


def _head(file: BinaryIO) -> tuple[dict[str, Any], int]:
    """Returns the table of a file of weights, and where they begin."""
    size_bytes = int.from_bytes(file.read(8), "little")
    table: dict[str, Any] = json.loads(file.read(size_bytes))
    return {name: row for name, row in table.items() if name != "__metadata__"}, 8 + size_bytes


def _wider(name: str, shape: list[int], inner: int) -> tuple[int, ...]:
    side = next((side for part, side in WIDENED.items() if part in name), None)
    return tuple(length + inner * (place == side) for place, length in enumerate(shape))


def _copy(read: BinaryIO, written: BinaryIO, row: dict[str, Any], wide: dict[str, Any]) -> None:
    """Copies a tensor, row by row, into the upper left corner of a wider one."""
    value_bytes, columns = BITS[row["dtype"]] // 8, row["shape"][-1]
    beyond_bytes = (wide["shape"][-1] - columns) * value_bytes
    begin, end = row["data_offsets"]
    row_bytes = columns * value_bytes
    for _ in range((end - begin) // row_bytes):
        written.write(read.read(row_bytes))
        written.seek(beyond_bytes, 1)
