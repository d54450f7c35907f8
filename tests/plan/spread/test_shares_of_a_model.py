"""How a model may be divided, and what the fullest box holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from known import GB, QWEN, make_checkpoint

from stoker.plan.speed.ways import Way
from stoker.plan.spread.sizes import share_of, ways_of, why_not
from stoker.records import CacheLayers

LLAMA = make_checkpoint(
    name="Llama-3.3-70B", file_bytes=141 * GB, layers=80, hidden_size=8192, heads=64, kv_heads=8, vocabulary_size=128_256,
    experts=None, experts_per_token=None, cache=(CacheLayers("full", 80, 163_840),), kv_bytes_per_token=327_680,
)  # fmt: skip


def test_two_boxes_are_one_two_copies_a_pair_or_a_pipeline() -> None:
    assert ways_of(2) == [Way(), Way(copies=2), Way(tensor=2), Way(pipeline=2)]


def test_four_boxes_may_also_be_two_pairs_one_after_the_other() -> None:
    assert Way(tensor=2, pipeline=2) in ways_of(4)


@given(st.integers(1, 64))
def test_every_way_takes_one_box_or_all(boxes: int) -> None:
    assert {way.boxes for way in ways_of(boxes)} == {1, boxes}


def test_heads_that_do_not_divide_are_said() -> None:
    assert why_not(Way(tensor=3), LLAMA) == (
        "its 64 attention heads do not divide by 3; its 8 heads of keys and values do not divide by 3, nor 3 by them"
    )
    assert why_not(Way(tensor=2), LLAMA) == why_not(Way(tensor=16), LLAMA) == ""


def test_a_model_with_fewer_layers_than_boxes_is_no_pipeline() -> None:
    assert why_not(Way(pipeline=100), LLAMA) == "it has 80 layers, fewer than 100 boxes"


def test_what_the_files_do_not_tell_is_left_to_the_engine() -> None:
    assert why_not(Way(tensor=3), make_checkpoint(heads=None, kv_heads=None)) == ""


def test_two_that_share_hold_half_of_weights_and_cache() -> None:
    part = share_of(Way(tensor=2), LLAMA)
    assert part.file_bytes == LLAMA.file_bytes // 2
    assert part.cache == (CacheLayers("full", 80, 81_920),)
    assert part.kv_bytes_per_token == 163_840


def test_more_boxes_than_heads_of_keys_and_values_keep_copies_of_them() -> None:
    assert share_of(Way(tensor=16), LLAMA).kv_bytes_per_token == 327_680 // 8


def test_a_compressed_cache_is_whole_on_every_box() -> None:
    whole = make_checkpoint()
    assert share_of(Way(tensor=2), whole).cache == whole.cache


def test_the_state_of_linear_layers_is_divided() -> None:
    whole, part = (sum(one.state_bytes for one in model.cache) for model in (QWEN, share_of(Way(tensor=2), QWEN)))
    assert part == pytest.approx(whole / 2)


def test_the_end_of_a_pipeline_holds_the_output_matrix_besides_its_layers() -> None:
    half, edge = LLAMA.file_bytes / 2, 2 * 128_256 * 8192
    assert share_of(Way(pipeline=2), LLAMA).file_bytes == pytest.approx(half, abs=edge / 2 + 1)
    assert share_of(Way(pipeline=4), LLAMA).file_bytes > LLAMA.file_bytes / 4


@given(st.sampled_from([(1, 2), (2, 1), (2, 2), (4, 1), (1, 4), (8, 1), (4, 2)]))
def test_all_parts_together_hold_at_least_the_whole(sizes: tuple[int, int]) -> None:
    way = Way(tensor=sizes[0], pipeline=sizes[1])
    part = share_of(way, LLAMA)
    assert LLAMA.file_bytes / way.boxes * 0.999 <= part.file_bytes < LLAMA.file_bytes
    assert (part.kv_bytes_per_token or 0) * way.boxes >= (LLAMA.kv_bytes_per_token or 0)


def test_one_box_holds_the_model_itself() -> None:
    assert share_of(Way(), LLAMA) is LLAMA
