"""Reads a safetensors file's header: which tensors it holds, never the tensors.

Source: the format's description and its reference reader, which is as strict: eight bytes of length, a JSON table, and data
that the tensors cover without a gap. The `safetensors` package would bring NumPy into a daemon that has to stay small.
"""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Annotated, BinaryIO, NamedTuple

import msgspec

from stoker.errors import Refused

LENGTH_BYTES = 8
HEADER_LIMIT_BYTES = 100_000_000  # the reference reader's
POINTER = b"version https://git-lfs"

# Bits of one element as the header counts them. A type that is not here is newer than this list: its size is not checked.
TYPE_BITS = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
    "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip

Whole = Annotated[int, msgspec.Meta(ge=0, le=2**60)]


class Tensor(msgspec.Struct, frozen=True, gc=False):
    """One row of the table. The defaults are for `__metadata__`, which stands among the tensors."""

    dtype: str = ""
    shape: Annotated[tuple[Whole, ...], msgspec.Meta(max_length=32)] = ()
    data_offsets: tuple[Whole, Whole] = (0, 0)


class Header(NamedTuple):
    """The tensors of one file, the size that the file has to have for them, and the size that it has."""

    tensors: dict[str, Tensor]
    need_bytes: int
    file_bytes: int


_TABLE = msgspec.json.Decoder(dict[str, Tensor])
_RAW_TABLE = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ROW = msgspec.json.Decoder(Tensor)


def read_header(file: Path) -> Header:
    """Returns the header; raises Refused with a sentence where it is broken. A file that is too short or long is not."""
    try:
        with file.open("rb") as content:
            table, data_offset_bytes, file_bytes = _read_table(content, file)
    except OSError as problem:
        raise Refused(f"{file} cannot be read", why=problem.strerror or str(problem)) from problem
    tensors = _parse(table, file)
    return Header(tensors, data_offset_bytes + _check(tensors, file), file_bytes)


def _read_table(content: BinaryIO, file: Path) -> tuple[bytes, int, int]:
    file_bytes = content.seek(0, 2)
    content.seek(0)
    start = content.read(len(POINTER))
    if not start:
        raise Refused(f"{file} is empty", next_step="fetch it again")
    if start == POINTER:
        raise Refused(f"{file} is a Git LFS pointer", why="the weights were not fetched", next_step="`git lfs pull`")
    length_bytes = int.from_bytes(start[:LENGTH_BYTES], "little")
    if length_bytes > HEADER_LIMIT_BYTES:
        why = f"its header claims {length_bytes:,} bytes; {HEADER_LIMIT_BYTES:,} is the format's limit"
        raise Refused(f"{file} is damaged", why=why, next_step="fetch it again")
    end = LENGTH_BYTES + length_bytes
    # Asked before reading: a read makes room for all that a damaged length claims.
    if end > file_bytes:
        why = f"its header ends at byte {end:,}, the file at byte {file_bytes:,}"
        raise Refused(f"{file} is cut short", why=why, next_step="fetch it again")
    content.seek(LENGTH_BYTES)
    return content.read(length_bytes), end, file_bytes


def _parse(table: bytes, file: Path) -> dict[str, Tensor]:
    try:
        tensors = _decode(table)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as problem:
        raise Refused(f"{file} is damaged", why=f"its header: {problem}", next_step="fetch it again") from problem
    tensors.pop("__metadata__", None)
    return tensors


def _decode(table: bytes) -> dict[str, Tensor]:
    try:
        return _TABLE.decode(table)
    except msgspec.ValidationError:  # metadata may hold a word that is called `shape`
        rows = _RAW_TABLE.decode(table)
        rows.pop("__metadata__", None)
        return {name: _ROW.decode(row) for name, row in rows.items()}


def _check(tensors: dict[str, Tensor], file: Path) -> int:
    """Returns where the data ends; a name that stands twice leaves a gap, for the table keeps one of them."""
    reached, in_order = 0, True
    for name, tensor in tensors.items():  # tens of thousands: once is enough
        dtype, (begin, end) = tensor.dtype, tensor.data_offsets
        bits = TYPE_BITS.get(dtype)
        if bits is not None and prod(tensor.shape) * bits != (end - begin) * 8:
            _refuse(file, name, f"is {dtype} {list(tensor.shape)} in {end - begin:,} bytes")
        if not dtype:
            _refuse(file, name, "has no type")
        in_order = in_order and begin == reached <= end
        reached = end
    return reached if in_order else _check_cover(tensors, file)


def _check_cover(tensors: dict[str, Tensor], file: Path) -> int:
    """Looks for gaps and overlaps in a table that does not list its tensors in the order of their data."""
    reached = 0
    for begin, end in sorted([tensor.data_offsets for tensor in tensors.values()]):
        if begin != reached or end < begin:
            name = next(name for name, tensor in tensors.items() if tensor.data_offsets == (begin, end))
            _refuse(file, name, f"begins at byte {begin:,} of the data, where {reached:,} was due")
        reached = end
    return reached


def _refuse(file: Path, name: str, what: str) -> None:
    raise Refused(f"{file} is damaged", why=f"tensor {name[:80]!r} {what}", next_step="fetch it again")
