"""The GGUF header reader: what the real library writes is read right, and nothing that is broken breaks it."""

from __future__ import annotations

import struct
import time
import tracemalloc
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from gguf import GGMLQuantizationType as Kind
from gguf import GGUFValueType as Type
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.errors import Refused
from stoker.facts.model.gguf import DIGEST_FROM_ITEMS, Header, read_header
from support import DEMO, fails, write_gguf

MOMENT_S = 2.0
MEMORY_LIMIT_BYTES = 100 * 1024**2

SCALARS = {
    Type.UINT8: st.integers(0, 2**8 - 1), Type.INT8: st.integers(-(2**7), 2**7 - 1),
    Type.UINT16: st.integers(0, 2**16 - 1), Type.INT16: st.integers(-(2**15), 2**15 - 1),
    Type.UINT32: st.integers(0, 2**32 - 1), Type.INT32: st.integers(-(2**31), 2**31 - 1),
    Type.UINT64: st.integers(0, 2**64 - 1), Type.INT64: st.integers(-(2**63), 2**63 - 1),
    Type.FLOAT32: st.floats(width=32, allow_nan=False), Type.FLOAT64: st.floats(allow_nan=False),
    Type.BOOL: st.booleans(), Type.STRING: st.text(),
}  # fmt: skip
scalar = st.sampled_from(list(SCALARS)).flatmap(lambda kind: st.tuples(SCALARS[kind], st.just(kind)))
keys = st.text("abc.xyz_", min_size=1, max_size=12).filter(lambda key: not key.startswith("general."))


def raw_gguf(tensors: int, pairs: int, body: bytes = b"") -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, pairs) + body


def raw_text(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


@cache
def valid() -> bytes:
    """A small file that holds one of everything."""
    with TemporaryDirectory() as folder:
        return write_gguf(
            Path(folder) / "valid.gguf",
            tensors={"a": ((2, 32), Kind.Q8_0), "b": ((3,), Kind.F32)},
            pairs={"llama.context_length": (128, Type.UINT32), "x.ratio": (0.5, Type.FLOAT32), "x.on": (True, Type.BOOL)},
            arrays={"x.short": [1, 2, 3], "x.words": ["a", "b"], "x.long": [f"t{number}" for number in range(70)]},
        ).read_bytes()


def read_bytes(folder: Path, raw: bytes) -> Header | Refused:
    """Reads a file of these bytes within a moment and little memory; any other exception than Refused gets out."""
    file = folder / "any.gguf"
    file.write_bytes(raw)
    tracemalloc.start()
    begun = time.process_time()
    try:
        return read_header(file)
    except Refused as refused:
        return refused
    finally:
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert time.process_time() - begun < MOMENT_S
        assert peak_bytes < MEMORY_LIMIT_BYTES


def is_sentence(refused: Refused) -> bool:
    return bool(refused.why) and len(refused.what) > 10


def test_scalars_of_every_type_are_read_as_they_were_written(tmp_path: Path) -> None:
    pairs: dict[str, tuple[Any, Any]] = {
        "x.u8": (255, Type.UINT8), "x.i8": (-128, Type.INT8), "x.u16": (65535, Type.UINT16), "x.i16": (-32768, Type.INT16),
        "x.u32": (2**32 - 1, Type.UINT32), "x.i32": (-(2**31), Type.INT32), "x.u64": (2**64 - 1, Type.UINT64),
        "x.i64": (-(2**63), Type.INT64), "x.f32": (0.5, Type.FLOAT32), "x.f64": (0.1, Type.FLOAT64),
        "x.yes": (True, Type.BOOL), "x.no": (False, Type.BOOL), "x.text": ("Grüße", Type.STRING),
    }  # fmt: skip
    header = read_header(write_gguf(tmp_path / "a.gguf", pairs=pairs))
    assert header.pairs == {"general.architecture": "llama", **{key: value for key, (value, _) in pairs.items()}}


def test_short_arrays_are_kept_and_long_ones_become_a_digest(tmp_path: Path) -> None:
    words = [f"token{number}" for number in range(1000)]
    header = read_header(
        write_gguf(
            tmp_path / "a.gguf", arrays={"x.few": [1, 2, 3], "x.words": ["a", "é"], "x.many": words, "x.ids": [7] * 100}
        )
    )
    assert header.pairs["x.few"] == [1, 2, 3]
    assert header.pairs["x.words"] == ["a", "é"]
    assert str(header.pairs["x.many"]).startswith("sha256:")
    assert str(header.pairs["x.many"]).endswith(":1000")
    assert str(header.pairs["x.ids"]).endswith(":100")


def test_the_digest_of_a_long_array_tells_contents_and_order_apart(tmp_path: Path) -> None:
    words = [f"token{number}" for number in range(DIGEST_FROM_ITEMS)]
    variants = [words, words[::-1], [*words[:-1], "other"], [*words, "more"]]
    digests = {
        read_header(write_gguf(tmp_path / f"{number}.gguf", arrays={"x": variant})).pairs["x"]
        for number, variant in enumerate(variants)
    }
    assert len(digests) == len(variants)
    assert read_header(write_gguf(tmp_path / "again.gguf", arrays={"x": words})).pairs["x"] in digests


@pytest.mark.parametrize(
    ("kind", "shape", "stored_bytes"),
    [
        (Kind.F32, (4, 32), 512), (Kind.F16, (4, 32), 256), (Kind.BF16, (4, 32), 256), (Kind.Q8_0, (4, 32), 136),
        (Kind.Q4_0, (4, 64), 144), (Kind.Q5_1, (2, 32), 48),
    ],
)  # fmt: skip
def test_tensors_are_read_with_their_size_in_the_file(
    tmp_path: Path, kind: Any, shape: tuple[int, ...], stored_bytes: int
) -> None:
    file = write_gguf(tmp_path / "a.gguf", tensors={"first": (shape, kind), "last": ((8,), Kind.F32)})
    header = read_header(file)
    first, last = header.tensors
    assert (first.name, first.type_name, first.elements) == ("first", kind.name, shape[0] * shape[1])
    assert first.stored_bytes == stored_bytes
    assert last.offset_bytes >= first.offset_bytes + stored_bytes
    assert last.stored_bytes == 32
    end_bytes = header.data_offset_bytes + last.offset_bytes + last.stored_bytes
    assert end_bytes <= file.stat().st_size < end_bytes + 32


def test_the_data_starts_where_the_files_own_alignment_says(tmp_path: Path) -> None:
    header = read_header(write_gguf(tmp_path / "a.gguf", pairs={"general.alignment": (256, Type.UINT32)}))
    assert header.data_offset_bytes % 256 == 0


def test_a_tensor_type_of_the_future_has_no_size_and_is_no_error(tmp_path: Path) -> None:
    body = raw_text(b"w") + struct.pack("<IQIQ", 1, 4, 200, 0)
    header = read_bytes(tmp_path, raw_gguf(1, 0, body))
    assert isinstance(header, Header)
    assert header.tensors == [("w", 4, "type 200", 0, None)]


@settings(max_examples=60)
@given(
    st.dictionaries(keys, scalar, max_size=8),
    st.dictionaries(keys, st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=80)),
)
def test_whatever_the_real_library_writes_is_read_back(
    pairs: dict[str, tuple[Any, Any]], arrays: dict[str, list[int]]
) -> None:
    arrays = {key: items for key, items in arrays.items() if key not in pairs}
    with TemporaryDirectory() as folder:
        found = read_header(write_gguf(Path(folder) / "a.gguf", pairs=pairs, arrays=arrays)).pairs
    del found["general.architecture"]
    assert found.keys() == pairs.keys() | arrays.keys()
    assert {key: found[key] for key in pairs} == {key: value for key, (value, _) in pairs.items()}
    for key, items in arrays.items():
        assert found[key] == items if len(items) < DIGEST_FROM_ITEMS else str(found[key]).endswith(f":{len(items)}")


def test_a_file_cut_at_any_byte_of_its_header_is_refused_with_a_sentence(tmp_path: Path) -> None:
    whole = read_bytes(tmp_path, valid())
    assert isinstance(whole, Header)
    for length in range(len(valid())):
        found = read_bytes(tmp_path, valid()[:length])
        if isinstance(found, Refused):
            assert "is empty" in found.what if length == 0 else "cut short" in found.what or length < 4
        else:  # only the padding and the tensors are missing, which is for the reader of the model to say
            assert found == whole
            assert length > whole.data_offset_bytes - 32


@settings(max_examples=400)
@given(st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), min_size=1, max_size=6))
def test_flipped_bytes_give_a_header_or_a_sentence(flips: list[tuple[int, int]]) -> None:
    raw = bytearray(valid())
    for place, value in flips:
        raw[place % len(raw)] = value
    with TemporaryDirectory() as folder:
        found = read_bytes(Path(folder), bytes(raw))
    assert isinstance(found, Header) or is_sentence(found)


@settings(max_examples=200)
@given(st.binary(max_size=400))
def test_random_bytes_after_the_magic_give_a_header_or_a_sentence(body: bytes) -> None:
    with TemporaryDirectory() as folder:
        found = read_bytes(Path(folder), raw_gguf(1, 2, body))
    assert isinstance(found, Header) or is_sentence(found)


@pytest.mark.parametrize(
    ("raw", "parts"),
    [
        (b"", ["is empty", "fetch it again"]),
        (b"PK\x03\x04 a zip", ["is not a GGUF file", "starts with b'PK"]),
        (b"<!DOCTYPE html><html>", ["is not a GGUF file", "b'<!DO'"]),
        (b"GGUF" + struct.pack("<I", 1), ["is GGUF version 1", "versions 2 and 3"]),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), ["is GGUF version 50331648", "little-endian"]),
        (raw_gguf(2**60, 0), ["is damaged", "1,152,921,504,606,846,976 entries"]),
        (raw_gguf(0, 2**63), ["is damaged", "entries in one list"]),
        (raw_gguf(0, 1), ["is cut short", "at 24 bytes", "fetch it again"]),
        (raw_gguf(0, 1, struct.pack("<Q", 2**62)), ["is damaged", "a text of 4,611,686,018,427,387,904 bytes"]),
        (raw_gguf(0, 1, struct.pack("<Q", 4 * 1024**2)), ["is cut short"]),
        (raw_gguf(0, 1, raw_text(b"a") + struct.pack("<I", 77)), ["is damaged", "unknown type 77"]),
        (raw_gguf(0, 1, raw_text(b"a") + struct.pack("<IIQ", 9, 10, 16 * 1024**2)), ["is cut short"]),
        (raw_gguf(0, 1, raw_text(b"a") + struct.pack("<II", 9, 9) * 5000), ["is damaged"]),
        (raw_gguf(0, 1, raw_text(b"a") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 5000), ["recursion"]),
        (raw_gguf(1, 0, raw_text(b"w") + struct.pack("<I", 4_000_000)), ["is damaged", "'w' claims 4000000 dimensions"]),
        (raw_gguf(1, 0, raw_text(b"w") + struct.pack("<IQQIQ", 2, 2**60, 2**60, 200, 0)), ["is damaged", "elements"]),
        (raw_gguf(0, 1, raw_text(b"general.alignment") + struct.pack("<II", 4, 0)), ["is damaged", "alignment is 0"]),
        (raw_gguf(0, 1, raw_text(b"general.alignment") + struct.pack("<II", 4, 33)), ["is damaged", "alignment is 33"]),
    ],
)  # fmt: skip
def test_each_fault_of_a_header_has_a_sentence(tmp_path: Path, raw: bytes, parts: list[str]) -> None:
    found = read_bytes(tmp_path, raw)
    assert isinstance(found, Refused)
    for part in (str(tmp_path), *parts):
        assert part in str(found)


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with fails(Refused, "cannot be read", "Is a directory"):
        read_header(tmp_path)
    with fails(Refused, "cannot be read", "No such file"):
        read_header(tmp_path / "nothing.gguf")


def test_a_header_that_never_ends_is_refused_without_reading_it_all(tmp_path: Path) -> None:
    file = tmp_path / "endless.gguf"
    pair = raw_text(b"k") + struct.pack("<I", 8) + raw_text(b"x" * 4_000_000)
    with file.open("wb") as out:
        out.write(raw_gguf(0, 1000))
        for _ in range(40):
            out.write(pair)
        out.truncate(8 * 1024**3)
    with fails(Refused, "is damaged", "longer than"):
        read_header(file)


def test_the_demo_models_header_is_small_in_memory() -> None:
    tracemalloc.start()
    header = read_header(DEMO)
    held_bytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert header.tensors
    assert held_bytes < 1024**2
