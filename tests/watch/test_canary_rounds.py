"""Canary prompts: what rounds of them say of an engine, and of what users' work made of its drafts."""

from __future__ import annotations

import pytest

from stoker.watch.canaries import (
    ACCEPTED_ROUNDS,
    CHANGED,
    SLOW,
    UNANSWERED,
    WORSE,
    CanaryAnswer,
    CanaryCheck,
    CanaryRound,
    fingerprint,
)
from stoker.watch.samples import EngineSample
from stoker.watch.speculation import DROPPED, OTHER_WORK
from stoker.watch.watcher import Watcher

TEXTS = ("code", "numbers", "rain")


def a_round(at_s: float = 0.0, texts: tuple[str, ...] = TEXTS, token_s: float = 0.05, rate: float = 0.6) -> CanaryRound:
    """A round of three answers, with 100 draft tokens."""
    answers = tuple(CanaryAnswer(fingerprint(text), 0.1, token_s) for text in texts)
    return CanaryRound(at_s, answers, 100, round(100 * rate))


def learnt(rounds: int = 5) -> CanaryCheck:
    """A check that knows how an engine answers."""
    check = CanaryCheck("coder", "p1")
    for _ in range(rounds):
        check.take(a_round())
    return check


@pytest.mark.parametrize(
    ("odd", "alert", "why"),
    [
        (a_round(token_s=0.12), SLOW, "120 ms a token with nobody else asking; 50 ms are usual"),
        (a_round(rate=0.3), WORSE, "0.30 of the drafts were accepted for the same prompts of which 0.60 are usual"),
        (a_round(texts=("code", "?", "rain")), CHANGED, "1 of 3 fixed prompts get another answer"),
    ],
)
def test_two_odd_rounds_in_a_row_are_said_and_one_is_chance(odd: CanaryRound, alert: str, why: str) -> None:
    check = learnt()
    check.take(odd)
    assert set(check.look().values()) == {None}
    assert check.is_in_doubt
    check.take(odd)
    assert {key for key, said in check.look().items() if said} == {(alert, "coder")}
    assert why in str(check.look()[alert, "coder"])
    check.take(a_round())
    assert set(check.look().values()) == {None}


def test_what_is_odd_teaches_nothing() -> None:
    check = learnt()
    for _ in range(30):
        check.take(a_round(token_s=0.12, rate=0.3))
    assert "50 ms are usual" in str(check.look()[SLOW, "coder"])
    assert "0.60 are usual" in str(check.look()[WORSE, "coder"])


def test_an_engine_that_breaks_ties_by_chance_is_not_said_to_change() -> None:
    check = CanaryCheck("coder", "p1")
    for number in range(20):
        check.take(a_round(texts=("code", "numbers", f"rain{number % 3}")))
    assert check.look()[CHANGED, "coder"] is None


def test_an_answer_that_stays_is_usual_in_the_end() -> None:
    check = learnt()
    for _ in range(ACCEPTED_ROUNDS):
        check.take(a_round(texts=("other", "numbers", "rain")))
    assert check.look()[CHANGED, "coder"]
    for _ in range(3):
        check.take(a_round(texts=("other", "numbers", "rain")))
    assert check.look()[CHANGED, "coder"] is None
    assert not check.is_in_doubt


def test_an_engine_that_does_not_answer_is_said_before_anything_is_learnt_of_it() -> None:
    check = CanaryCheck("coder", "p1")
    check.fail("it answered HTTP 500")
    check.fail("it answered HTTP 500")
    assert check.look()[UNANSWERED, "coder"] == "it answered HTTP 500"
    check.take(a_round())
    assert check.look()[UNANSWERED, "coder"] is None


def test_rounds_without_drafts_or_times_say_nothing_of_them() -> None:
    check = learnt()
    for _ in range(3):
        check.take(CanaryRound(0.0, tuple(CanaryAnswer(fingerprint(text), 0.1, None) for text in TEXTS)))
    assert set(check.look().values()) == {None}


def test_what_was_learnt_is_kept_for_the_same_plan_alone() -> None:
    kept = learnt().keep()
    same, other = CanaryCheck("coder", "p1"), CanaryCheck("coder", "p2")
    for check in (same, other):
        check.restore(kept)
    assert (same.is_learning, other.is_learning) == (False, True)
    for _ in range(2):
        same.take(a_round(texts=("?", "?", "?"), token_s=0.12))
    assert "3 of 3" in str(same.look()[CHANGED, "coder"])
    assert "50 ms are usual" in str(same.look()[SLOW, "coder"])


@pytest.mark.parametrize("kept", [[], [[1.0]], [[1.0, 2.0], [], [], [], [], []], [[float("nan"), 1.0], [], [], [], [], []]])
def test_what_cannot_have_been_kept_is_left(kept: list[list[float]]) -> None:
    check = CanaryCheck("coder", "p1")
    check.restore(kept)
    assert check.is_learning


class Played:
    """A watcher, and a service under it whose drafts are asked for by the minute."""

    def __init__(self) -> None:
        self.watcher, self.at_s = Watcher(0, {}), 0.0
        self._drafted = self._accepted = 0

    def work(self, minutes: int, rate: float) -> str | None:
        """Plays busy minutes of the same kind of work; returns the fault of the draft that is said at their end, or None."""
        looked = {}
        for _ in range(minutes * 4):
            self.at_s += 15
            self._drafted, self._accepted = self._drafted + 400, self._accepted + round(400 * rate)
            steps = self._drafted // 3
            totals = (steps + self._accepted, 5 * steps, self._drafted, self._accepted, steps)
            sample = EngineSample(self.at_s, 1, 0, 0, 0, *totals, work=self.at_s)
            looked = self.watcher.look_at_engine("coder", "eagle", sample, 0.0)
        return next((alert for (alert, _), why in looked.items() if why), None)


def test_a_round_that_is_as_ever_tells_other_work_from_worse_drafts() -> None:
    one = Played()
    canaries = one.watcher.canaries("coder", "p1")
    for _ in range(5):
        canaries.take(a_round(one.at_s))
    one.work(200, 0.6)
    assert one.work(10, 0.2) == DROPPED, "no round since then"
    assert one.watcher.doubted_since_s("coder") is not None
    canaries.take(a_round(one.at_s))
    assert one.work(1, 0.2) == OTHER_WORK
    canaries.take(a_round(one.at_s, rate=0.2))
    assert one.work(1, 0.2) == DROPPED
    one.work(70, 0.6)
    assert one.watcher.doubted_since_s("coder") is None


def test_what_canary_prompts_made_the_engine_count_is_nobodys_work() -> None:
    one = Played()
    one.work(10, 0.6)
    check = one.watcher.engine("coder", "eagle")
    before = check.drafts.seen(60)
    check.begin_anew()
    one.at_s += 15
    sample = EngineSample(one.at_s, 1, generated=10**6, prompted=10**6, drafted=10**6, accepted=0, steps=10**6)
    one.watcher.look_at_engine("coder", "eagle", sample, 0.0)
    assert check.growth is None
    assert check.drafts.seen(60) == before
