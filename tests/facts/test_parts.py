"""Models that are split over several files, as the large ones on the hub are."""

from __future__ import annotations

from pathlib import Path

import gguf
import pytest

from home import Home
from stoker.config import demo_model
from stoker.errors import Refused
from stoker.facts.model.read import read_digest, read_model


def write_split_demo(folder: Path, tensors_a_part: int = 30) -> list[Path]:
    """Writes the demo model as several files, with the `gguf` library's own splitting; returns them in order."""
    reader = gguf.GGUFReader(demo_model())
    writer = gguf.GGUFWriter(folder / "split.gguf", "llama", split_max_tensors=tensors_a_part)
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name != gguf.Keys.General.ARCHITECTURE:
            kind, inner = field.types[0], field.types[-1]
            writer.add_key_value(field.name, field.contents(), kind, inner if kind is gguf.GGUFValueType.ARRAY else None)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return sorted(folder.glob("split-*.gguf"))


def test_a_split_model_is_read_as_one(tmp_path: Path) -> None:
    parts = write_split_demo(tmp_path)
    whole = read_model(demo_model())
    assert len(parts) > 1
    for path in (tmp_path, parts[0], parts[-1]):
        model = read_model(path)
        assert (model.parameters, model.quantisation, model.name) == (whole.parameters, whole.quantisation, whole.name)
        assert model.file_bytes == sum(part.stat().st_size for part in parts)
        assert model.path == str(parts[0])


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    parts = write_split_demo(tmp_path)
    parts[1].unlink()
    with pytest.raises(Refused, match="not whole") as caught:
        read_model(parts[0])
    assert parts[1].name in caught.value.why


def test_a_part_that_is_cut_short_is_named(tmp_path: Path) -> None:
    parts = write_split_demo(tmp_path)
    parts[-1].write_bytes(parts[-1].read_bytes()[:-100])
    with pytest.raises(Refused, match=f"{parts[-1].name} is cut short"):
        read_model(tmp_path)


def test_two_split_models_in_a_folder_are_not_mixed_up(tmp_path: Path) -> None:
    parts = write_split_demo(tmp_path)
    parts[0].with_name("other-00001-of-00001.gguf").write_bytes(parts[0].read_bytes())
    with pytest.raises(Refused, match="holds"):
        read_model(tmp_path)


def test_the_digest_changes_with_any_part(tmp_path: Path) -> None:
    parts = write_split_demo(tmp_path)
    before = read_digest(parts[0])
    changed = bytearray(parts[-1].read_bytes())
    changed[-8:] = b"changed!"
    parts[-1].write_bytes(changed)
    assert read_digest(parts[0]) != before


def test_a_split_model_is_served_by_the_real_engine(home: Home) -> None:
    folder = home.folder / "big"
    folder.mkdir()
    write_split_demo(folder)
    assert home.json("up", str(folder))["state"] == "READY"
