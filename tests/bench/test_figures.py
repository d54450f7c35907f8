"""Each figure by its definition, on requests whose figures are worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from bench_seen import make_cell, make_repeat, make_request, make_writes
from stoker.bench.figures import figures_of, peak_tps
from stoker.bench.goodput import find_knees
from stoker.records import FIGURES, BenchFigure, BenchLoad, BenchSlo, CellResult, SpeculationSeen


def medians(*repeats: Any, slo: BenchSlo | None = None) -> dict[str, float]:
    """Returns the medians by their names."""
    return {one.name: one.median for one in figures_of(repeats, slo)}


def test_the_rate_of_decoding_leaves_out_all_tokens_of_the_first_write() -> None:
    found = medians(make_repeat(make_request()))
    assert found["itl_token_s"] == pytest.approx(0.010)
    assert found["request_decode_tps"] == pytest.approx(100.0)
    assert found["itl_chunk_s"] == pytest.approx(0.010)
    assert found["total_decode_tps"] == pytest.approx(100.0)


def test_times_and_rates_of_a_request_count_from_its_sending() -> None:
    found = medians(make_repeat(make_request(sent_at_s=5.0)))
    assert (found["ttft_s"], found["first_chunk_s"], found["e2e_s"]) == (0.2, 0.01, 1.16)
    assert found["request_e2e_tps"] == pytest.approx(100 / 1.16)
    assert found["prefill_tps"] == pytest.approx(512 / 0.2)
    assert found["total_e2e_tps"] == pytest.approx(100 / 1.16)


def test_what_was_cached_was_not_computed() -> None:
    assert medians(make_repeat(make_request(cached_tokens=412)))["prefill_tps"] == pytest.approx(100 / 0.2)
    assert "prefill_tps" not in medians(make_repeat(make_request(turn=1)))  # nobody tells what was cached of a next turn


def test_a_total_goes_from_the_first_request_to_the_last_token() -> None:
    repeat = make_repeat(make_request(), make_request(sent_at_s=0.5))
    found = medians(repeat)
    assert found["total_e2e_tps"] == pytest.approx(200 / 1.66)
    assert found["total_decode_tps"] == pytest.approx(192 / (1.66 - 0.2))
    assert found["requests_per_s"] == pytest.approx(2 / 1.66)
    assert found["total_prefill_tps"] == pytest.approx(1024 / 0.7)


def test_a_failed_request_counts_in_no_figure_but_the_share_of_good_ones() -> None:
    failed = make_request(error="HTTP 500", ttft_s=9.0, last_token_s=10.0)
    found = medians(make_repeat(make_request(), failed), slo=BenchSlo(ttft_s=0.25))
    assert found["ttft_s"] == 0.2
    assert found["total_e2e_tps"] == pytest.approx(100 / 1.16)
    assert found["goodput_share"] == 0.5
    assert found["goodput_per_s"] == pytest.approx(1 / 1.16)


@pytest.mark.parametrize(
    ("slo", "share"),
    [
        (BenchSlo(ttft_s=0.2, itl_token_s=0.0101, e2e_s=1.2), 1.0), (BenchSlo(ttft_s=0.19), 0.0),
        (BenchSlo(itl_token_s=0.0099), 0.0), (BenchSlo(e2e_s=1.0), 0.0),
    ],
)  # fmt: skip
def test_a_good_request_keeps_every_limit(slo: BenchSlo, share: float) -> None:
    assert medians(make_repeat(make_request()), slo=slo)["goodput_share"] == share


def test_all_at_once_has_no_time_per_token() -> None:
    found = medians(make_repeat(make_request(last_token_s=0.2, first_write_tokens=100, chunks=1)))
    assert found.keys().isdisjoint({"itl_token_s", "itl_chunk_s", "request_decode_tps"})


def test_a_peak_is_the_best_second() -> None:
    assert peak_tps([(0.0, 1), (1.0, 5), (1.5, 5), (1.9, 5), (2.4, 1)]) == 15.0
    assert peak_tps([(0.0, 9), (0.25, 1), (0.5, 1)]) == 4.0  # less than a second: what came after the first, by its time
    assert peak_tps([(0.0, 9)]) is None
    request = make_request(writes=make_writes((0.2, 4), (0.3, 1)))
    assert medians(make_repeat(request))["request_peak_tps"] == pytest.approx(10)


def test_the_interval_is_over_the_repeats_and_not_over_their_requests() -> None:
    def ttft(*values: float) -> BenchFigure:
        repeats = [make_repeat(make_request(ttft_s=value), make_request(ttft_s=value)) for value in values]
        return next(one for one in figures_of(repeats) if one.name == "ttft_s")

    assert (ttft(0.1, 0.2).low, len(ttft(0.1, 0.2).values)) == (None, 4)
    assert (ttft(0.1, 0.2, 0.3).low, ttft(0.1, 0.2, 0.3).high) == (0.1, 0.3)


def test_every_figure_has_its_definition() -> None:
    speculation = SpeculationSeen("counters", 3, 2, 1, 2 / 3, 3.0)
    repeat = make_repeat(make_request(writes=make_writes((0.2, 4), (1.16, 96))), speculation=speculation)
    names = {one.name for one in figures_of([repeat], BenchSlo(ttft_s=1.0))}
    assert names == FIGURES.keys()


def test_the_knee_is_where_more_at_once_no_longer_pays() -> None:
    def cell(concurrency: int, total: float) -> CellResult:
        figure = BenchFigure("total_e2e_tps", "repeat", (total,), total, None, None, None)
        return CellResult(make_cell(load=BenchLoad("closed", concurrency)), (figure,), ("usage",), 1, 0)

    [knee] = find_knees([cell(8, 305.0), cell(1, 100.0), cell(4, 300.0), cell(2, 190.0)])
    assert (knee.concurrency, knee.because) == (4, "concurrency 8 brings +2 % in all")
    [open_end] = find_knees([cell(1, 100.0), cell(2, 190.0), cell(4, 350.0)])
    assert (open_end.concurrency, open_end.because) == (4, "the highest that was measured still brings more")
    assert find_knees([cell(1, 100.0), cell(2, 190.0)]) == ()
