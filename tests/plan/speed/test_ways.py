"""Several boxes beside one: what was published is inside the intervals, and what cannot be, never is."""

from __future__ import annotations

import csv
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.plan.speed.catalog import find_shape, known_shapes
from stoker.plan.speed.layout import plan_layout
from stoker.plan.speed.links import costs_of, hidden_of, known_links, reduced_s
from stoker.plan.speed.prediction import load_fit
from stoker.plan.speed.rows import read_row
from stoker.plan.speed.speculation import Drafting
from stoker.plan.speed.ways import Load, Way, gain_of, load_of, speeds_of, total_tok_s
from stoker.plan.speed.work import Served
from stoker.records.speed import LinkKind

ROWS = Path(__file__).parents[3] / "tools" / "calibration" / "gb10.csv"
FIT = load_fit()
HIDDEN = {"Qwen3.6-27B": 5120, "gpt-oss-120b": 2880, "Nemotron-3-Super-120B-A12B": 4096}
NAMES = tuple(shape.names[0] for shape in known_shapes())
LINKS: tuple[LinkKind, ...] = ("rdma", "sockets", "unknown")


def rows(model: str, note: str) -> list[dict[str, str]]:
    with ROWS.open() as file:
        return [row for row in csv.DictReader(file) if row["model"] == model and note.lower() in row["note"].lower()]


def is_inside(row: dict[str, str], link: LinkKind) -> bool:
    """Whether the published rate lies in the interval for the same burst over such a link."""
    asked = read_row(row, FIT.first_rates)
    assert not isinstance(asked, str)
    way = Way(tensor=asked.served.boxes) if asked.served.boxes > 1 else Way(copies=asked.replicas)
    load = Load(msgspec.structs.replace(asked.served, boxes=1), HIDDEN[row["model"]], asked.burst, asked.drafting)
    if way.copies > 1:
        load = msgspec.structs.replace(load, burst=msgspec.structs.replace(asked.burst, requests=int(row["concurrency"])))
    (speed,) = speeds_of(load, way, costs_of(link), FIT, [int(row["concurrency"])])
    return speed.total.low_tok_s <= float(row["decode_tok_s"]) <= speed.total.high_tok_s


def served(name: str, quantisation: str = "fp8", engine: str = "vllm") -> Served:
    shape = find_shape(name)
    assert shape is not None
    return Served(shape, plan_layout(shape, quantisation, engine, None), engine)


def load(name: str, quantisation: str = "fp8", engine: str = "vllm") -> Load:
    return load_of(served(name, quantisation, engine), None, 1000, None)


@pytest.mark.parametrize("link", ["unknown", "sockets"])
def test_the_pair_at_8_tokens_a_second_is_inside_where_its_link_is_not_said(link: LinkKind) -> None:
    """Qwen3.6-27B in FP8 over two: 8.1 tok/s for one request, 40.9 for eight; nobody says whether it was RDMA."""
    found = rows("Qwen3.6-27B", "TP=2")
    assert sorted(row["decode_tok_s"] for row in found) == ["40.9", "8.1"]
    assert all(is_inside(row, link) for row in found)


def test_the_pair_at_8_tokens_a_second_was_none_with_rdma() -> None:
    assert not any(is_inside(row, "rdma") for row in rows("Qwen3.6-27B", "TP=2"))


def test_every_row_of_nemotron_over_two_is_inside() -> None:
    found = rows("Nemotron-3-Super-120B-A12B", "TP=2")
    assert len(found) == 7
    assert all(is_inside(row, "rdma") for row in found)


def test_gpt_oss_over_two_is_inside_up_to_eight_requests() -> None:
    """With more it is faster than predicted on one box too: mixtures read fewer experts together than the fit thinks."""
    found = {int(row["concurrency"]): is_inside(row, "rdma") for row in rows("gpt-oss-120b", "TP=2")}
    assert found == {1: True, 2: True, 4: True, 8: True, 16: False, 32: False, 64: False}
    alone = {int(row["concurrency"]): is_inside(row, "rdma") for row in rows("gpt-oss-120b", "solo; TP=1")}
    assert not alone[16]
    assert not alone[32]


@pytest.mark.parametrize(("model", "least", "most"), [("gpt-oss-120b", 1.2, 1.2), ("Nemotron-3-Super-120B-A12B", 1.4, 1.41)])
def test_what_one_request_gained_over_two_is_what_is_expected_of_the_link(model: str, least: float, most: float) -> None:
    """20 % for gpt-oss-120b, 40 % for Nemotron: kubis.ai, each by the same person on one box and on two."""
    (row,) = [row for row in rows(model, "TP=2") if row["concurrency"] == "1"]
    asked = read_row(row, FIT.first_rates)
    assert not isinstance(asked, str)
    one = Load(msgspec.structs.replace(asked.served, boxes=1), HIDDEN[model], asked.burst, None)
    alone = total_tok_s(one, Way(), costs_of("rdma").usual, FIT)
    slow, fast = (
        total_tok_s(one, Way(tensor=2), cost, FIT) / alone for cost in (costs_of("rdma").worst, costs_of("rdma").best)
    )
    assert slow <= least
    assert most <= fast


def test_the_usual_cost_over_rdma_is_that_of_the_fit() -> None:
    assert 2 * known_links()["rdma"].usual.allreduce_s == pytest.approx(FIT.factors["step.link"], rel=0.02)


def test_a_link_is_never_faster_than_its_rate() -> None:
    slow = costs_of("rdma", rate_gbit=10)
    assert slow.best.bytes_per_s == pytest.approx(1.15e9)
    assert costs_of("rdma", rate_gbit=800) == costs_of("rdma")


def test_one_box_exchanges_nothing() -> None:
    assert reduced_s(costs_of("sockets").worst, 1, 1000, 8192, 80) == 0


@given(
    name=st.sampled_from(NAMES), link=st.sampled_from(LINKS), count=st.integers(1, 64), boxes=st.sampled_from([2, 3, 4, 8])
)
@settings(max_examples=80, deadline=None)
def test_a_pipeline_never_gives_more_than_copies_on_the_same_boxes(
    name: str, link: LinkKind, count: int, boxes: int
) -> None:
    _, best = gain_of(load(name), Way(pipeline=boxes), costs_of(link), FIT, count)
    assert best <= 1


@given(name=st.sampled_from(NAMES), link=st.sampled_from(LINKS), count=st.integers(1, 64), boxes=st.sampled_from([2, 4]))
@settings(max_examples=80, deadline=None)
def test_sharing_layers_never_gains_more_than_there_are_boxes_and_a_worse_link_never_more(
    name: str, link: LinkKind, count: int, boxes: int
) -> None:
    one = msgspec.structs.replace(load(name), burst=msgspec.structs.replace(load(name).burst, requests=count))
    costs = costs_of(link)
    slow, usual, fast = (total_tok_s(one, Way(tensor=boxes), cost, FIT) for cost in (costs.worst, costs.usual, costs.best))
    assert slow <= usual <= fast < boxes * total_tok_s(one, Way(), costs.best, FIT)


@given(name=st.sampled_from(NAMES), link=st.sampled_from(LINKS), counts=st.sets(st.integers(1, 64), min_size=1, max_size=3))
@settings(max_examples=60, deadline=None)
def test_what_each_gets_times_how_many_is_what_all_get(name: str, link: LinkKind, counts: set[int]) -> None:
    for way in (Way(), Way(copies=2), Way(tensor=2), Way(pipeline=2)):
        for speed in speeds_of(load(name), way, costs_of(link), FIT, sorted(counts)):
            assert speed.each.decode_tok_s * speed.requests == pytest.approx(speed.total.decode_tok_s)
            assert speed.total.low_tok_s <= speed.total.decode_tok_s <= speed.total.high_tok_s


def test_copies_give_one_request_what_one_box_gives() -> None:
    one, two = (speeds_of(load("Qwen3.6-27B"), way, costs_of("rdma"), FIT, [1]) for way in (Way(), Way(copies=2)))
    assert one == two


def test_the_width_of_a_dense_model_is_guessed_within_a_third() -> None:
    assert hidden_of(served("Qwen3.6-27B").shape) == pytest.approx(5120, rel=0.34)


def test_a_draft_model_exchanges_as_often_over_the_link_as_it_has_layers() -> None:
    target, draft = served("Qwen3-32B"), served("Qwen3-0.6B")
    alone, way = Drafting("draft", 4, 3.0), Way(tensor=2)
    rates = {
        link: [total_tok_s(load_of(target, None, 1000, one), way, costs_of(link).usual, FIT)
               for one in (None, alone, msgspec.structs.replace(alone, model=draft))]
        for link in ("rdma", "sockets")
    }  # fmt: skip
    for plain, _, drafted in rates.values():
        assert drafted > plain
    lost = {link: 1 - drafted / head for link, (_, head, drafted) in rates.items()}
    assert lost["sockets"] > 0.1 > lost["rdma"]  # 28 layers four times a step, each a message of its own
