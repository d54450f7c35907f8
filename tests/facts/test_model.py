"""What a model on disk is, and every way in which it is none."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from gguf import GGMLQuantizationType as Kind
from gguf import GGUFValueType as Type
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.errors import Refused
from stoker.facts.model.gguf import read_header
from stoker.facts.model.gguf_model import find_gguf_draft
from stoker.facts.model.read import read_model
from stoker.plan.choose import choose_plan
from support import DEMO, DEMO_DRAFT, fails, make_wish, write_gguf

SHAPE: dict[str, tuple[Any, Any]] = {
    "general.name": ("Tiny", Type.STRING), "general.license": ("mit", Type.STRING),
    "llama.context_length": (2048, Type.UINT32), "llama.block_count": (3, Type.UINT32),
    "llama.embedding_length": (64, Type.UINT32), "llama.attention.head_count": (8, Type.UINT32),
}  # fmt: skip


def test_the_demo_model_is_what_its_maker_says() -> None:
    model = read_model(DEMO)
    assert 7_500_000 < (model.parameters or 0) < 8_500_000
    assert (model.context_tokens, model.quantisation, model.architecture) == (4096, "Q8_0", "llama")
    assert model.file_bytes == DEMO.stat().st_size
    assert model.has_chat_template
    assert model.kv_bytes_per_token is not None
    assert 1024 <= model.kv_bytes_per_token <= 8192


def test_the_demo_draft_speaks_the_models_vocabulary_and_is_smaller() -> None:
    model, draft = read_model(DEMO), read_model(DEMO_DRAFT)
    assert model.vocabulary_hash is not None
    assert model.vocabulary_hash == draft.vocabulary_hash
    assert draft.file_bytes < model.file_bytes / 2


def test_every_fact_comes_from_the_header(tmp_path: Path) -> None:
    file = write_gguf(
        tmp_path / "tiny.gguf",
        tensors={"w": ((4, 32), Kind.Q8_0), "v": ((8,), Kind.F32)},
        pairs={
            **SHAPE,
            "llama.attention.head_count_kv": (2, Type.UINT32),
            "tokenizer.chat_template": ("{{x}}", Type.STRING),
        },
        arrays={"tokenizer.ggml.tokens": [f"t{number}" for number in range(100)]},
    )
    model = read_model(file)
    assert (model.name, model.licence, model.context_tokens, model.has_chat_template) == ("Tiny", "mit", 2048, True)
    assert (model.parameters, model.quantisation) == (136, "Q8_0")
    assert model.kv_bytes_per_token == 3 * 2 * (8 + 8) * 2
    assert model.vocabulary_hash is not None
    assert model.vocabulary_hash.endswith(":100")
    assert model.path == str(file)


def test_key_and_value_widths_of_their_own_count(tmp_path: Path) -> None:
    widths = {"llama.attention.key_length": (32, Type.UINT32), "llama.attention.value_length": (16, Type.UINT32)}
    model = read_model(write_gguf(tmp_path / "a.gguf", pairs={**SHAPE, **widths}))
    assert model.kv_bytes_per_token == 3 * 8 * (32 + 16) * 2


@pytest.mark.parametrize("missing", ["llama.block_count", "llama.embedding_length", "llama.attention.head_count"])
def test_a_cache_whose_size_is_not_said_is_unknown_and_not_zero(tmp_path: Path, missing: str) -> None:
    pairs = {key: value for key, value in SHAPE.items() if key != missing}
    assert read_model(write_gguf(tmp_path / "a.gguf", pairs=pairs)).kv_bytes_per_token is None


def test_heads_that_differ_by_layer_make_the_cache_unknown(tmp_path: Path) -> None:
    pairs = {key: value for key, value in SHAPE.items() if key != "llama.attention.head_count"}
    file = write_gguf(tmp_path / "a.gguf", pairs=pairs, arrays={"llama.attention.head_count": [8, 4, 8]})
    assert read_model(file).kv_bytes_per_token is None


def test_kv_heads_that_differ_by_layer_are_added_up(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "a.gguf", pairs=SHAPE, arrays={"llama.attention.head_count_kv": [8, 4, 8]})
    assert read_model(file).kv_bytes_per_token == (8 + 4 + 8) * (8 + 8) * 2


def test_what_a_header_does_not_say_is_none(tmp_path: Path) -> None:
    model = read_model(write_gguf(tmp_path / "bare.gguf"))
    assert model.name == "bare"
    assert (model.context_tokens, model.vocabulary_hash, model.licence, model.has_chat_template) == (None, None, None, False)


def test_a_context_of_zero_is_unknown(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "a.gguf", pairs={"llama.context_length": (0, Type.UINT32)})
    assert read_model(file).context_tokens is None


def test_the_digest_tells_a_replaced_file_from_the_one_before_it(tmp_path: Path) -> None:
    file = tmp_path / "a.gguf"
    file.write_bytes(DEMO.read_bytes())
    digest = read_model(DEMO).digest
    assert len(digest) == 12
    assert read_model(file).digest == digest
    raw = bytearray(DEMO.read_bytes())
    for place in (-1, len(raw) // 2):
        raw[place] ^= 1
        file.write_bytes(raw)
        assert read_model(file).digest != digest
        raw[place] ^= 1


def test_a_folder_with_one_gguf_is_that_model(tmp_path: Path) -> None:
    (tmp_path / "README.md").touch()
    file = write_gguf(tmp_path / "a.gguf")
    assert read_model(tmp_path) == read_model(file)


def test_a_link_keeps_its_name_since_a_hubs_blobs_have_none(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "a.gguf")
    (tmp_path / "link").symlink_to(file)
    assert read_model(tmp_path / "link").path == str(tmp_path / "link")


def test_a_folder_with_two_models_asks_which(tmp_path: Path) -> None:
    write_gguf(tmp_path / "a.gguf")
    write_gguf(tmp_path / "b.gguf")
    with fails(Refused, "holds 2 GGUF files", "a.gguf, b.gguf", "name the one to serve"):
        read_model(tmp_path)


@pytest.mark.parametrize("name", ["tiny-draft-q8_0.gguf", "small.gguf"])
def test_of_a_model_and_its_draft_the_draft_is_told_by_name_or_by_size_and_vocabulary(tmp_path: Path, name: str) -> None:
    (tmp_path / "model.gguf").symlink_to(DEMO)
    (tmp_path / name).symlink_to(DEMO_DRAFT)
    assert find_gguf_draft(tmp_path) == tmp_path / name
    assert Path(read_model(tmp_path).path).name == "model.gguf"


def test_two_copies_of_one_model_are_no_model_and_its_draft(tmp_path: Path) -> None:
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).symlink_to(DEMO)
    assert find_gguf_draft(tmp_path) is None


def test_a_model_that_is_called_draft_and_is_alone_is_the_model(tmp_path: Path) -> None:
    (tmp_path / "my-draft.gguf").symlink_to(DEMO)
    assert find_gguf_draft(tmp_path) is None
    assert Path(read_model(tmp_path).path).name == "my-draft.gguf"


def test_a_folder_without_a_model_says_what_it_lacks(tmp_path: Path) -> None:
    with fails(Refused, "there is no model in", "it is empty"):
        read_model(tmp_path)
    (tmp_path / "config.json").touch()
    with fails(Refused, "there is no model in", "none of its files ends in .gguf"):
        read_model(tmp_path)


def test_a_missing_path_names_what_lies_beside_it(tmp_path: Path) -> None:
    with fails(Refused, "there is no model at", "check the path"):
        read_model(tmp_path / "nothing.gguf")
    write_gguf(tmp_path / "real.gguf")
    with fails(Refused, "there is: real.gguf"):
        read_model(tmp_path / "nothing.gguf")


def test_a_file_cut_anywhere_in_its_tensors_is_refused(tmp_path: Path) -> None:
    whole = write_gguf(tmp_path / "whole.gguf", tensors={"w": ((2, 32), Kind.Q8_0)}, pairs=SHAPE)
    raw, start = whole.read_bytes(), read_header(whole).data_offset_bytes
    cut = tmp_path / "cut.gguf"
    for length in range(start, start + 68):
        cut.write_bytes(raw[:length])
        with fails(Refused, "is cut short", f"the file at byte {length:,}", "fetch it again"):
            read_model(cut)


def test_half_of_the_demo_model_is_refused_before_any_engine_sees_it(tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(DEMO.read_bytes()[: DEMO.stat().st_size // 2])
    with fails(Refused, "is cut short", "its tensors end at byte"):
        read_model(cut)


def test_a_gguf_without_tensors_is_no_model(tmp_path: Path) -> None:
    with fails(Refused, "holds no model", "no architecture or no tensors"):
        read_model(write_gguf(tmp_path / "vocabulary.gguf", tensors={}))


@pytest.mark.parametrize("content", [b"", b"hello", b"GGUF"])
def test_a_file_that_is_no_gguf_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "a.gguf"
    file.write_bytes(content)
    with fails(Refused, str(file)):
        read_model(file)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.gguf")
    with fails(Refused, "neither a file nor a folder"):
        read_model(tmp_path / "a.gguf")


def test_a_name_that_no_file_system_takes_is_refused() -> None:
    with fails(Refused, "cannot be read", "File name too long"):
        read_model(Path("x" * 5000))


def test_a_path_that_is_not_utf8_is_refused_before_it_reaches_the_store(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "a.gguf").rename(tmp_path / os.fsdecode(b"gr\xfc\xdf.gguf"))
    with fails(Refused, "cannot be used", "it is not UTF-8", "rename it"):
        read_model(file)


HOSTILE = st.one_of(
    st.tuples(st.integers(0, 2**64 - 1), st.just(Type.UINT64)),
    st.tuples(st.integers(-(2**63), 2**63 - 1), st.just(Type.INT64)),
    st.tuples(st.text(max_size=5), st.just(Type.STRING)), st.tuples(st.booleans(), st.just(Type.BOOL)),
    st.tuples(st.floats(), st.just(Type.FLOAT64)),
)  # fmt: skip


@settings(max_examples=80)
@given(st.fixed_dictionaries({}, optional=dict.fromkeys([*SHAPE, "llama.attention.head_count_kv"], HOSTILE)))
def test_whatever_a_header_claims_ends_in_a_plan_or_a_refusal(pairs: dict[str, tuple[Any, Any]]) -> None:
    with TemporaryDirectory() as folder:
        file = write_gguf(Path(folder) / "a.gguf", pairs=pairs)
        try:
            plan = choose_plan(make_wish(), read_model(file))
        except Refused as refused:
            assert refused.why or refused.next_step
        else:
            assert plan.memory_need_bytes >= file.stat().st_size
