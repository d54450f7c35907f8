"""Reads a GGUF file's header: its key-value pairs and tensor table, never its tensors.

Source: the GGUF specification, versions 2 and 3. The `gguf` package would map the whole file and bring NumPy into a daemon
that has to stay small, and it raises whatever a broken file makes it raise; here each fault has a sentence.
"""

from __future__ import annotations

import hashlib
import struct
from math import prod
from pathlib import Path
from typing import BinaryIO, NamedTuple

from stoker.errors import Refused

MAGIC = b"GGUF"
SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9
STRING_LIMIT_BYTES = 4 * 1024**2
COUNT_LIMIT = 16 * 1024**2  # items of one array
TABLE_LIMIT = 256 * 1024  # pairs, or tensors: each is kept
ELEMENTS_LIMIT = 2**48
HEADER_LIMIT_BYTES = 96 * 1024**2  # the largest vocabularies take a third of it
DIGEST_BYTES = 1024**2
DIGEST_FROM_ITEMS = 64  # longer arrays (vocabularies) are kept as a digest, to stay small

# ggml tensor types: name, elements a block, bytes a block.
TENSOR_TYPES = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 36), 10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210),
    15: ("Q8_K", 256, 292), 16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50), 20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136), 24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4), 27: ("I64", 1, 8),
    28: ("F64", 1, 8), 29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2), 34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66), 39: ("MXFP4", 32, 17), 40: ("NVFP4", 64, 36),
}  # fmt: skip

Value = str | int | float | bool | list[object]


class Tensor(NamedTuple):
    """One row of the tensor table; `stored_bytes` is None for a type that we do not know."""

    name: str
    elements: int
    type_name: str
    offset_bytes: int
    stored_bytes: int | None


class Header(NamedTuple):
    """A GGUF's key-value pairs, its tensors, and where their data starts. Long arrays are given as 'sha256:...:COUNT'."""

    pairs: dict[str, Value]
    tensors: list[Tensor]
    data_offset_bytes: int


def read_header(path: Path) -> Header:
    """Returns the header; raises Refused with a sentence where the file is missing, empty, cut short or not a GGUF."""
    try:
        with path.open("rb") as file:
            return _Reader(file, path).header()
    except (OSError, MemoryError, RecursionError, UnicodeDecodeError) as problem:
        raise Refused(f"{path} cannot be read", why=str(problem) or type(problem).__name__) from problem


class _Reader:
    def __init__(self, file: BinaryIO, path: Path) -> None:
        self.file = file
        self.path = path
        self.file_bytes = path.stat().st_size

    def header(self) -> Header:
        magic = self.file.read(4)
        if not magic:
            raise Refused(f"{self.path} is empty", next_step="fetch it again")
        if magic != MAGIC:
            raise Refused(f"{self.path} is not a GGUF file", why=f"it starts with {magic!r}, a GGUF starts with b'GGUF'")
        version = self.number("<I")
        if version not in (2, 3):
            raise Refused(f"{self.path} is GGUF version {version}", why="versions 2 and 3, little-endian, are understood")
        tensor_count, pair_count = self.count(TABLE_LIMIT), self.count(TABLE_LIMIT)
        pairs = dict(self.pair() for _ in range(pair_count))
        tensors = [self.tensor() for _ in range(tensor_count)]
        alignment = pairs.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
            raise Refused(f"{self.path} is damaged", why=f"its alignment is {alignment!r}")
        return Header(pairs, tensors, -(-self.file.tell() // alignment) * alignment)

    def take(self, size_bytes: int) -> bytes:
        end = self.file.tell() + size_bytes
        if end > HEADER_LIMIT_BYTES:
            raise Refused(f"{self.path} is damaged", why=f"its header is longer than {HEADER_LIMIT_BYTES:,} bytes")
        # Asked before reading: a read makes room for all that a damaged length claims.
        if end > self.file_bytes or len(found := self.file.read(size_bytes)) < size_bytes:
            raise Refused(
                f"{self.path} is cut short",
                why=f"its header goes on past the end of the file at {self.file_bytes:,} bytes",
                next_step="fetch it again",
            )
        return found

    def number(self, layout: str) -> int:
        return int(struct.unpack(layout, self.take(struct.calcsize(layout)))[0])

    def count(self, limit: int = COUNT_LIMIT) -> int:
        found = self.number("<Q")
        if found > limit:
            raise Refused(f"{self.path} is damaged", why=f"its header claims {found:,} entries in one list")
        return found

    def text(self) -> str:
        size_bytes = self.number("<Q")
        if size_bytes > STRING_LIMIT_BYTES:
            raise Refused(f"{self.path} is damaged", why=f"its header claims a text of {size_bytes:,} bytes")
        return self.take(size_bytes).decode(errors="replace")

    def pair(self) -> tuple[str, Value]:
        key = self.text()
        return key, self.value(self.number("<I"))

    def value(self, kind: int) -> Value:
        if kind == STRING:
            return self.text()
        if kind == ARRAY:
            return self.array()
        if kind not in SCALARS:
            raise Refused(f"{self.path} is damaged", why=f"its header holds a value of unknown type {kind}")
        layout = SCALARS[kind]
        found: Value = struct.unpack(layout, self.take(struct.calcsize(layout)))[0]
        return found

    def array(self) -> Value:
        kind, count = self.number("<I"), self.count()
        if count < DIGEST_FROM_ITEMS:
            return [self.value(kind) for _ in range(count)]
        digest = hashlib.sha256()
        if kind in SCALARS:
            left_bytes = struct.calcsize(SCALARS[kind]) * count
            while left_bytes:
                piece = self.take(min(left_bytes, DIGEST_BYTES))
                left_bytes -= len(piece)
                digest.update(piece)
        else:
            for _ in range(count):
                digest.update(repr(self.value(kind)).encode())
        return f"sha256:{digest.hexdigest()[:16]}:{count}"

    def tensor(self) -> Tensor:
        name, dimensions = self.text(), self.number("<I")
        if dimensions > 8:
            raise Refused(f"{self.path} is damaged", why=f"tensor {name[:60]!r} claims {dimensions} dimensions")
        elements = prod(self.number("<Q") for _ in range(dimensions))
        if elements > ELEMENTS_LIMIT:
            raise Refused(f"{self.path} is damaged", why=f"tensor {name[:60]!r} claims {elements:,} elements")
        kind, offset_bytes = self.number("<I"), self.number("<Q")
        type_name, block, block_bytes = TENSOR_TYPES.get(kind, (f"type {kind}", 0, 0))
        return Tensor(name, elements, type_name, offset_bytes, elements // block * block_bytes if block else None)
