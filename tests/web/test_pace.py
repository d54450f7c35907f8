"""How a service goes just now: rates of the last seconds, drafts of the last minute, times of the last streams."""

from __future__ import annotations

import pytest

from stoker.flows.pace import Paces
from stoker.records import UsageRecord
from stoker.records.watching import WatchedService
from stoker.watch.engine_page import EnginePage
from stoker.watch.families.engines import EngineSeen

WATCHED = WatchedService("a", "READY", 0, 0, None, 0.5, 2.5, (0.4, 0.6))


class Story:
    """Looks at one engine, second by second."""

    def __init__(self) -> None:
        self.at_s = 1000.0
        self.paces = Paces(lambda: self.at_s)
        self.launch = 1

    def look(self, took_s: float, **counted: float) -> None:
        self.at_s += took_s
        page = EnginePage({f"stoker_engine_{name}": value for name, value in counted.items()}, {}, frozenset())
        self.paces.take("a", self.launch, EngineSeen("a", "vllm", page, frozenset()), 1)

    def ask(self, ttft_s: float, tokens: int | None, token_s: float) -> None:
        duration_s = ttft_s + token_s * ((tokens or 10) - 1)
        self.paces.note(UsageRecord(0, "k", "/", "r", duration_s, 200, "a", "m", 5, tokens, None, ttft_s))


def test_rates_are_over_ten_seconds() -> None:
    story = Story()
    for second in range(30):
        story.look(1.0, generated_tokens=100 * second if second < 20 else 1900 + 10 * (second - 19), prompt_tokens=0)
    pace = story.paces.pace("a", 2, 1, None)
    assert pace.tokens_per_s == pytest.approx(10.0)
    assert pace.prompt_tokens_per_s == 0.0
    assert pace.waiting == 2


def test_what_is_not_known_is_not_zero() -> None:
    pace = Story().paces.pace("a", 0, 3, None)
    assert (pace.running, pace.tokens_per_s, pace.ttft_s, pace.accept_rate, pace.band) == (3, None, None, None, None)


def test_a_new_launch_begins_anew() -> None:
    story = Story()
    story.look(1.0, generated_tokens=500)
    story.launch = 2
    story.look(1.0, generated_tokens=10)
    assert story.paces.pace("a", 0, 0, None).tokens_per_s is None
    story.look(1.0, generated_tokens=30)
    assert story.paces.pace("a", 0, 0, None).tokens_per_s == pytest.approx(20.0)


def test_drafts_are_the_last_minutes_or_those_that_watching_knows() -> None:
    story = Story()
    story.look(1.0, draft_tokens=0, accepted_tokens=0, verify_steps=0)
    story.look(1.0, draft_tokens=9, accepted_tokens=9, verify_steps=3)  # too few to say
    pace = story.paces.pace("a", 0, 0, WATCHED)
    assert (pace.accept_rate, pace.accept_length, pace.band) == (0.5, 2.5, (0.4, 0.6))
    story.look(1.0, draft_tokens=90, accepted_tokens=63, verify_steps=30)
    pace = story.paces.pace("a", 0, 0, WATCHED)
    assert (pace.accept_rate, pace.accept_length) == pytest.approx((0.7, 3.1))


def test_times_are_medians_of_recent_streams() -> None:
    story = Story()
    for ttft_s in (0.1, 0.2, 9.0):
        story.ask(ttft_s, 41, 0.02)
    story.ask(5.0, 41, 0.0)  # no stream
    pace = story.paces.pace("a", 0, 0, None)
    assert (pace.ttft_s, pace.token_s) == pytest.approx((0.2, 0.02))
    story.at_s += 1000.0
    assert story.paces.pace("a", 0, 0, None).ttft_s is None


def test_what_was_forgotten_is_forgotten_here_too() -> None:
    story = Story()
    story.look(1.0, generated_tokens=5)
    story.ask(0.1, 41, 0.02)
    story.paces.forget_all_but([])
    pace = story.paces.pace("a", 0, 0, None)
    assert (pace.ttft_s, pace.running) == (None, 0)
