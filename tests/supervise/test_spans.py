"""How much of a start each stage has where stages overlap."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.records import StageName
from stoker.supervise.starts.spans import Span, clip, covered_s, share_out

moments = st.floats(0, 1000, allow_nan=False)
stages: st.SearchStrategy[StageName] = st.sampled_from(["import", "weights", "compile", "graphs"])
spans = st.lists(st.builds(lambda stage, one, two: Span(stage, min(one, two), max(one, two), ""), stages, moments, moments))


def test_the_shorter_of_two_has_the_time_that_both_claim() -> None:
    whole, part = Span("warm-up", 0, 90, ""), Span("compile", 10, 19, "")
    assert share_out([whole, part]) == {"warm-up": 81, "compile": 9}


def test_what_runs_side_by_side_counts_once() -> None:
    assert share_out([Span("weights", 0, 30, ""), Span("weights", 5, 40, "")]) == {"weights": 40}


def test_a_stage_without_length_is_there() -> None:
    assert share_out([Span("graphs", 3, 3, "")]) == {"graphs": 0}


def test_what_lies_outside_is_cut_away() -> None:
    found = clip([Span("import", -5, 5, ""), Span("graphs", 8, 20, ""), Span("other", 30, 40, "")], 0, 10)
    assert [(span.stage, span.begin_s, span.end_s) for span in found] == [("import", 0, 5), ("graphs", 8, 10)]


@given(spans)
def test_all_shares_together_are_what_is_covered(found: list[Span]) -> None:
    shares = share_out(found)
    assert sum(shares.values()) == pytest.approx(covered_s(found))
    for stage, share in shares.items():
        assert share <= covered_s(span for span in found if span.stage == stage) + 1e-6


@given(spans)
def test_the_order_of_the_lines_changes_no_total(found: list[Span]) -> None:
    assert covered_s(found) == pytest.approx(covered_s(reversed(found)))
