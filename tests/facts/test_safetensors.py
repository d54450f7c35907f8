"""Headers of safetensors: what they hold, and every way in which they are broken, by accident or on purpose."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoints import header_of, write_raw, write_shard
from stoker.errors import Refused
from stoker.facts.model.safetensors import HEADER_LIMIT_BYTES, read_header
from support import DEMO, fails

TENSORS = {"a.weight": ("BF16", (4, 8)), "b.scale": ("F32", ()), "c.packed": ("U8", (3,))}


def row(begin: int, end: int, dtype: str = "U8", shape: list[Any] | None = None) -> dict[str, Any]:
    return {"dtype": dtype, "shape": [end - begin] if shape is None else shape, "data_offsets": [begin, end]}


def test_a_header_tells_names_types_and_shapes(tmp_path: Path) -> None:
    header = read_header(write_shard(tmp_path / "a.safetensors", TENSORS))
    assert {name: (tensor.dtype, tensor.shape) for name, tensor in header.tensors.items()} == TENSORS
    assert header.need_bytes == header.file_bytes == (tmp_path / "a.safetensors").stat().st_size


def test_the_demo_models_weights_are_read_as_their_library_wrote_them() -> None:
    header = read_header(DEMO.parent / "hf" / "model.safetensors")
    assert header.tensors["model.embed_tokens.weight"].shape == (4096, 256)
    assert header.need_bytes == header.file_bytes


@pytest.mark.parametrize("extra_bytes", [-1, 1])
def test_a_file_of_another_length_is_read_and_its_length_told(tmp_path: Path, extra_bytes: int) -> None:
    header = read_header(write_shard(tmp_path / "a.safetensors", TENSORS, extra_bytes))
    assert header.file_bytes - header.need_bytes == extra_bytes


def test_metadata_may_use_the_words_of_a_tensor(tmp_path: Path) -> None:
    table = {"__metadata__": {"shape": "square", "dtype": "any"}, "a": row(0, 2)}
    assert read_header(write_raw(tmp_path / "a.safetensors", json.dumps(table).encode(), 2)).tensors.keys() == {"a"}


def test_a_type_that_is_newer_than_this_reader_is_no_fault(tmp_path: Path) -> None:
    table = {"a": row(0, 5, "F5_NEW", [8])}
    assert read_header(write_raw(tmp_path / "a.safetensors", json.dumps(table).encode(), 5)).need_bytes > 5


def test_elements_of_half_a_byte_are_counted_as_elements(tmp_path: Path) -> None:
    table = {"a": row(0, 4, "F4", [8])}
    assert read_header(write_raw(tmp_path / "a.safetensors", json.dumps(table).encode(), 4)).tensors["a"].shape == (8,)


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"a": row(0, 4), "b": row(2, 6)}, "begins at byte 2 of the data, where 4 was due"),
        ({"a": row(0, 4), "b": row(8, 12)}, "begins at byte 8 of the data, where 4 was due"),
        ({"a": row(1, 4)}, "begins at byte 1 of the data, where 0 was due"),
        ({"a": row(0, 4, shape=[5])}, "tensor 'a' is U8 [5] in 4 bytes"),
        ({"a": row(0, 4, "BF16", [4])}, "tensor 'a' is BF16 [4] in 4 bytes"),
        ({"a": row(4, 0, shape=[])}, "tensor 'a'"),
        ({"a": row(9, 0, "NEW", [])}, "tensor 'a'"),
        ({"a": row(0, 4, shape=[-4])}, ">= 0"),
        ({"a": row(0, 4, shape=[2**63])}, "its header"),
        ({"a": row(0, 4, shape=[1] * 33)}, "length"),
        ({"a": row(0, 4, shape=["4"])}, "Expected `int`"),
        ({"a": row(-4, 0)}, ">= 0"),
        ({"a": {"shape": [4], "data_offsets": [0, 4]}}, "has no type"),
        ({"a": [0, 4]}, "Expected `object`"),
        ([], "Expected `object`"),
    ],
)
def test_a_table_that_contradicts_itself_is_refused_with_the_tensors_name(tmp_path: Path, table: Any, why: str) -> None:
    file = write_raw(tmp_path / "a.safetensors", json.dumps(table).encode(), 16)
    with fails(Refused, f"{file} is damaged", why, "fetch it again"):
        read_header(file)


def test_a_name_that_stands_twice_is_found_by_the_gap_that_it_leaves(tmp_path: Path) -> None:
    first, second = json.dumps(row(0, 4)), json.dumps(row(4, 8))
    file = write_raw(tmp_path / "a.safetensors", f'{{"a": {first}, "a": {second}}}'.encode(), 8)
    with fails(Refused, "tensor 'a' begins at byte 4 of the data, where 0 was due"):
        read_header(file)


@pytest.mark.parametrize(
    "table", [b"", b"{", b"\xff\xfe", b'{"a\xff": 1}', b"[" * 100_000, b'{"a":' * 100_000, b"NaN", b"{}}"]
)
def test_a_table_that_is_no_json_is_refused(tmp_path: Path, table: bytes) -> None:
    with fails(Refused, "is damaged", "its header: "):
        read_header(write_raw(tmp_path / "a.safetensors", table, 8))


@pytest.mark.parametrize("length_bytes", [HEADER_LIMIT_BYTES + 1, 2**60, 2**64 - 1])
def test_a_length_of_exabytes_makes_no_room_for_itself(tmp_path: Path, length_bytes: int) -> None:
    file = tmp_path / "a.safetensors"
    file.write_bytes(length_bytes.to_bytes(8, "little") + b"{}")
    with fails(Refused, "is damaged", f"claims {length_bytes:,} bytes"):
        read_header(file)


def test_a_file_that_ends_inside_its_header_is_cut_short(tmp_path: Path) -> None:
    whole = write_shard(tmp_path / "a.safetensors", TENSORS).read_bytes()
    end = 8 + int.from_bytes(whole[:8], "little")
    for length in range(1, end):
        (tmp_path / "a.safetensors").write_bytes(whole[:length])
        with pytest.raises(Refused) as caught:
            read_header(tmp_path / "a.safetensors")
        if length >= 8:
            assert "is cut short" in caught.value.what
            assert f"its header ends at byte {end}, the file at byte {length}" in caught.value.why


def test_an_empty_file_a_missing_one_and_a_pointer_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    with fails(Refused, "cannot be read", "No such file"):
        read_header(file)
    file.touch()
    with fails(Refused, "is empty"):
        read_header(file)
    file.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5000000000\n")
    with fails(Refused, "is a Git LFS pointer", "the weights were not fetched", "`git lfs pull`"):
        read_header(file)


ROWS = st.fixed_dictionaries(
    {},
    optional={
        "dtype": st.sampled_from(["U8", "BF16", "F4", "NEW", "", 3]),
        "shape": st.lists(st.integers(-1, 2**61) | st.text(max_size=2), max_size=4),
        "data_offsets": st.lists(st.integers(-1, 2**61), max_size=3),
    },
)


@settings(max_examples=200)
@given(st.dictionaries(st.text(max_size=6), ROWS | st.none() | st.integers(), max_size=4), st.integers(0, 64))
def test_whatever_a_table_claims_it_is_read_or_refused(table: dict[str, Any], data_bytes: int) -> None:
    with TemporaryDirectory() as folder:
        file = write_raw(Path(folder) / "a.safetensors", json.dumps(table).encode(), data_bytes)
        try:
            header = read_header(file)
        except Refused as refused:
            assert refused.why
        else:
            assert header.need_bytes >= 8


@settings(max_examples=200)
@given(st.binary(max_size=200))
def test_whatever_bytes_a_file_holds_it_is_read_or_refused(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "a.safetensors"
        file.write_bytes(content)
        with pytest.raises(Refused):
            read_header(file)


@settings(max_examples=100)
@given(st.integers(0, 400), st.integers(0, 255))
def test_one_wrong_byte_anywhere_in_a_header_is_survived(place: int, value: int) -> None:
    with TemporaryDirectory() as folder:
        file = write_shard(Path(folder) / "a.safetensors", TENSORS)
        content = bytearray(file.read_bytes())
        content[place % len(content)] = value
        file.write_bytes(content)
        try:
            assert set(read_header(file).tensors)
        except Refused as refused:
            assert str(file) in refused.what


def test_a_table_is_laid_out_as_the_format_wants_it() -> None:
    table = header_of(TENSORS)
    assert [table[name]["data_offsets"] for name in TENSORS] == [[0, 64], [64, 68], [68, 71]]
