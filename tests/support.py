"""What several of the folders need: GGUF files made with the real library, and records with everything filled in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from stoker.errors import StokerError
from stoker.records import GIB, Memory, Model, Plan, Setting, Wish

DEMO = Path(__file__).parent.parent / "models" / "demo" / "stoker-demo-Q8_0.gguf"
DEMO_DRAFT = DEMO.with_name("stoker-demo-draft-Q8_0.gguf")
BOXES = Path(__file__).parent / "box"


@contextmanager
def fails(kind: type[StokerError], *parts: str) -> Iterator[None]:
    """Expects an error of exactly this kind whose text holds all the parts."""
    with pytest.raises(StokerError) as caught:
        yield
    assert type(caught.value) is kind
    for part in parts:
        assert part in str(caught.value)


def write_gguf(
    file: Path,
    *,
    architecture: str = "llama",
    tensors: dict[str, tuple[tuple[int, ...], gguf.GGMLQuantizationType]] | None = None,
    pairs: dict[str, tuple[Any, gguf.GGUFValueType]] | None = None,
    arrays: dict[str, list[Any]] | None = None,
) -> Path:
    """Writes a GGUF with the real library; tensors are zeros of the given shape and type."""
    writer = gguf.GGUFWriter(str(file), architecture)
    for key, (value, kind) in (pairs or {}).items():
        writer.add_key_value(key, value, kind)
    for key, items in (arrays or {}).items():
        writer.add_array(key, items)
    for name, (shape, type_) in (
        {"a.weight": ((4,), gguf.GGMLQuantizationType.F32)} if tensors is None else tensors
    ).items():
        zeros = np.zeros(shape, np.float32)
        writer.add_tensor(name, gguf.quants.quantize(zeros, type_), raw_dtype=type_)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def make_model(**changes: Any) -> Model:
    """Returns a model of 1 GiB with a cache of 1 KiB a token."""
    facts: dict[str, Any] = {
        "path": "/models/small.gguf", "name": "Small", "architecture": "llama", "file_bytes": GIB, "parameters": 10**9,
        "quantisation": "Q8_0", "context_tokens": 32768, "kv_bytes_per_token": 1024, "vocabulary_hash": "sha256:1:9",
        "has_chat_template": True, "licence": "apache-2.0",
    }  # fmt: skip
    return Model(**{**facts, **changes})


def make_wish(**changes: Any) -> Wish:
    """Returns a wish for the small model."""
    return Wish(**{"name": "small", "model": "/models/small.gguf", **changes})


def make_plan(*settings: Setting, **changes: Any) -> Plan:
    """Returns a plan for the small model."""
    facts: dict[str, Any] = {
        "plan_id": "p1", "service": "small", "model": "small-1", "model_path": "/models/small.gguf", "revision": "r1",
        "engine": "llamacpp", "server": None, "port": 0, "settings": settings, "memory_need_bytes": GIB,
        "memory_because": "it was counted",
    }  # fmt: skip
    return Plan(**{**facts, **changes})


def make_memory(available_bytes: int, total_bytes: int = 16 * GIB, full_stall_pct: float | None = None) -> Memory:
    """Returns a machine's memory."""
    return Memory(total_bytes, available_bytes, available_bytes, 0, 0, 0, full_stall_pct)
