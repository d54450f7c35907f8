"""Which replica answers, by value: never another revision, and of one plan the one with least to do."""

from __future__ import annotations

import pytest

from stoker.flows.boxes.choosing import ANYWHERE, Asked, choose, read_asked
from stoker.gateway.directory import Entry, NoReplica
from stoker.records import Endpoint, QueueLimits, State

LIMITS = QueueLimits(None, 64, 0.0)
KEYS = [str(number).encode() for number in range(400)]


def replica(box: str, revision: str = "r", plan: str = "p", *, ready: bool = True, away: str = "") -> Entry:
    endpoint = Endpoint(f"m@{box}", "m", revision, plan, "h", 1, box=box) if ready else None
    state = State.READY if ready else State.STOPPED
    return Entry(
        f"m@{box}", "m", state, 0.0, "", None, endpoint, 5, LIMITS, revision=revision, plan_id=plan, box=box, away=away
    )


def chosen(*replicas: Entry, asked: Asked = ANYWHERE, **loads: int) -> str:
    return choose(replicas, asked, lambda one: loads.get(one.box, 0)).box


def test_the_one_with_the_fewest_tokens_in_flight_is_asked_and_the_first_among_equals() -> None:
    assert chosen(replica("a"), replica("b"), replica("c"), a=9, b=2, c=5) == "b"
    assert chosen(replica("a"), replica("b")) == "a"


def test_two_revisions_are_two_models_until_the_request_says_which() -> None:
    both = (replica("a", "old"), replica("b", "new"))
    with pytest.raises(NoReplica) as refused:
        chosen(*both)
    assert (refused.value.status, refused.value.code) == (409, "revisions_differ")
    assert chosen(*both, asked=Asked(revision="new")) == "b"
    assert chosen(*both, asked=Asked(box="a")) == "a"
    assert chosen(both[0], replica("b", "new", ready=False)) == "a"


def test_of_two_plans_the_more_frequent_one_is_asked_and_among_equals_this_boxs() -> None:
    assert chosen(replica("a", plan="p"), replica("b", plan="q"), replica("c", plan="q"), b=7, c=3) == "c"
    assert chosen(replica("a", plan="p"), replica("b", plan="q"), a=9) == "a"


def test_what_is_not_ready_or_away_is_only_told_of_where_nothing_is_ready() -> None:
    assert chosen(replica("a", ready=False), replica("b"), b=99) == "b"
    assert chosen(replica("a", ready=False, away="since long"), replica("b", ready=False)) == "b"
    assert chosen(replica("a", ready=False, away="since long")) == "a"


def test_a_named_box_that_is_away_is_told_of_and_no_other_answers() -> None:
    assert chosen(replica("a", ready=False, away="x"), replica("b"), asked=Asked(box="a")) == "a"


def test_an_affinity_moves_only_for_the_keys_of_the_box_that_went() -> None:
    three = [replica(name) for name in "abc"]
    before = {key: chosen(*three, asked=Asked(affinity=key), a=5) for key in KEYS}
    after = {key: chosen(*three[:2], asked=Asked(affinity=key), b=5) for key in KEYS}
    assert all(after[key] == box for key, box in before.items() if box != "c")
    assert all(90 < list(before.values()).count(box) < 180 for box in "abc")


def test_the_headers_are_read() -> None:
    assert read_asked(None) is read_asked([(b"accept", b"*/*")]) is ANYWHERE
    said = [(b"x-stoker-box", b"a"), (b"x-stoker-revision", b"r"), (b"x-stoker-affinity", b"k")]
    assert read_asked(said) == Asked("a", "r", b"k")
