"""What all kept turns on GPUs together tell of the gateway."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.gpu.turns import Pair, pairs_of, read_rows, render, row_of

PAGE = Path(__file__).parents[2] / "docs" / "measured" / "gpu.md"


def turns(engine: str, side: str, rates: list[float], server_us: list[float]) -> str:
    """Returns a block's note."""
    figures = {"total_e2e_tps": rates, "server_us_token": server_us}
    note = {"engine": engine, "version": "1", "what": "door", "name": "crowd", "side": side, "figures": figures}
    return json.dumps(note) + "\n"


def test_turns_are_paired_with_those_that_followed_and_a_block_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    file.write_text(
        turns("vllm", "through", [100.0, 101.0], [70.04, 71.0])
        + turns("sglang", "through", [50.0], [90.0])
        + turns("vllm", "direct", [99.0, 98.0], [72.0, 73.0])
        + turns("vllm", "through", [120.0, 121.0], [60.0, 61.0])
    )
    assert pairs_of(file, "a card") == [
        Pair("a card", "vllm", 100.0, 99.0, 70.0, 72.0),
        Pair("a card", "vllm", 101.0, 98.0, 71.0, 73.0),
    ]


def test_what_is_given_is_taken_off_before_luck_is_asked() -> None:
    pairs = [Pair("a card", "vllm", 100.0 + by, 100.0, 50.0, 50.0) for by in (-3.0, -1.0, 1.0, 3.0)] * 10
    # The mean logarithm is -0.00025, the deviation 0.02267 and its error 0.003584; t of 39 degrees of freedom is 2.0227.
    assert row_of("vllm", pairs, 0.0)[2:5] == ["100.0 % (99.3 to 100.7 %)", "100.0 %", "99.3 %"]
    # ln 0.98 is 4.15 errors below with 1.5 % taken off still 1.35, and 2 % taken off -0.07 of them.
    assert row_of("vllm", pairs, 0.015)[4:] == ["97.8 %", "one time in 11"]
    assert row_of("vllm", pairs, 0.02)[5] == "one time in 2"


def test_the_page_says_what_the_kept_pairs_tell() -> None:
    assert render(read_rows(), 0.006).strip() in PAGE.read_text()
