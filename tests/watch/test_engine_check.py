"""One engine: frozen, without metrics, with a line, stalling."""

from __future__ import annotations

from typing import Any

import pytest

from stoker.records import Plan, Setting
from stoker.watch.book import AlertBook, Clock
from stoker.watch.engine import EngineCheck
from stoker.watch.reading import Asked, high_quantile, make_sample, method_of
from stoker.watch.samples import EngineSample
from stoker.watch.slots import Slot
from stoker.watch.table import alerts_by_id

NAME = "coder"


def look(check: EngineCheck, at_s: float, silent_s: float = 0.0, **more: Any) -> dict[tuple[str, str], str | None]:
    """A look at a service that answers one request."""
    seen: dict[str, Any] = {"launch": 1, "requests": 1, "running": 1, "waiting": 0, **more}
    return check.look(EngineSample(at_s, **seen), silent_s)


def test_an_engine_with_requests_that_moves_nothing_is_frozen() -> None:
    check = EngineCheck(NAME, "off")
    for at_s in range(0, 240, 15):
        assert look(check, at_s, silent_s=at_s, work=7)["engine-frozen", NAME] is None
    why = look(check, 255, silent_s=255, work=7)["engine-frozen", NAME]
    assert why == "1 requests run, and for 255 s no counter moved and no byte came"


@pytest.mark.parametrize("alive", [{"work": "each"}, {"silent": 0.0}, {"requests": 0, "running": 0}])
def test_one_that_moves_or_speaks_or_has_nothing_to_do_is_not(alive: dict[str, Any]) -> None:
    check = EngineCheck(NAME, "off")
    for at_s in range(0, 900, 15):
        more = {name: value for name, value in alive.items() if name in ("requests", "running")}
        work = at_s if "work" in alive else 7
        looked = look(check, at_s, silent_s=alive.get("silent", at_s), work=work, **more)
        assert looked["engine-frozen", NAME] is None


def test_one_that_is_asked_past_the_gateway_is_judged_by_its_counters() -> None:
    check = EngineCheck(NAME, "off")
    for at_s in range(0, 300, 15):
        looked = look(check, at_s, requests=0, running=2, work=7)
    assert looked["engine-frozen", NAME] is not None


@pytest.mark.parametrize("before", [[], [7, 7]])
def test_one_that_hangs_together_with_its_metrics_is_frozen_too(before: list[int]) -> None:
    check = EngineCheck(NAME, "off")
    for at_s, work in enumerate(before):
        look(check, at_s, work=work)
    for at_s in range(15, 240, 15):
        assert look(check, at_s, silent_s=at_s, running=None, lost="unreachable")["engine-frozen", NAME] is None
    assert look(check, 255, silent_s=255, running=None, lost="unreachable")["engine-frozen", NAME] is not None


def test_metrics_that_vanish_are_said_and_judge_nothing_else() -> None:
    check = EngineCheck(NAME, "eagle")
    look(check, 0, generated=10)
    looked = look(check, 15, lost="unreachable")
    assert looked["engine-metrics-vanished", NAME] == "unreachable"
    assert ("accept-rate-dropped", NAME) not in looked
    assert look(check, 30, generated=20)["engine-metrics-vanished", NAME] is None


def test_what_cannot_be_is_said_as_long_as_it_is_so_and_fires() -> None:
    check, book, key = EngineCheck(NAME, "eagle"), AlertBook(alerts_by_id()), ("engine-metrics-odd", NAME)
    told = []
    for at_s in range(0, 90, 15):
        looked = look(check, at_s, generated=100 - at_s, odd="went back")
        told += book.take({key: looked[key]}, Clock(at_s, at_s))
    assert [(one.id, one.why) for one in told] == [("engine-metrics-odd", "went back")]
    assert look(check, 90, generated=20, launch=2)[key] is None


def test_counters_that_fall_teach_nothing() -> None:
    check = EngineCheck(NAME, "eagle")
    look(check, 0, generated=100, drafted=100, accepted=50)
    look(check, 15, generated=50, drafted=50, accepted=25)
    assert check.growth is None
    look(check, 30, generated=60, drafted=70, accepted=30)
    assert check.growth is not None and check.growth.drafted == 20


def test_a_line_is_long_once_it_was_never_short() -> None:
    check = EngineCheck(NAME, "off")
    for at_s in range(0, 600, 15):
        assert look(check, at_s, waiting=4)["queue-long", NAME] is None
    assert "4 wait" in str(look(check, 600, waiting=4)["queue-long", NAME])
    assert look(check, 615, waiting=3)["queue-long", NAME] is None
    assert look(check, 630, waiting=9)["queue-long", NAME] is None


def test_stalls_are_those_with_rejected_drafts() -> None:
    check = EngineCheck(NAME, "eagle")
    check.drafts.take(Slot(3000, 150, 1000, 0, 1150))
    why = look(check, 0, stall_s=0.25)["speculation-stalls", NAME]
    assert why == "one of a hundred tokens comes 250 ms late at 1.15 tokens a verify step"
    assert look(check, 15, stall_s=0.1)["speculation-stalls", NAME] is None
    for _ in range(15):
        check.drafts.take(Slot(3000, 1500, 1000, 0, 2500))
    assert look(check, 30, stall_s=0.25)["speculation-stalls", NAME] is None


def test_drafts_of_sglang_follow_from_its_steps_and_tokens() -> None:
    """The counters of a run of 0.5.16 with n-grams: 2 requests, 520 tokens, 76 steps of 8 tokens."""
    values = {"generated_tokens": 520.0, "verify_steps": 76.0, "tokens_verified_per_step": 8.0, "requests": 2.0}
    sample = make_sample({f"stoker_engine_{name}": value for name, value in values.items()}, None, Asked(0, 1, 0, 0), "")
    assert (sample.drafted, sample.accepted, sample.steps) == (532, 442, 76)


def test_engines_that_count_drafts_are_believed() -> None:
    values = {"draft_tokens": 191.0, "accepted_tokens": 190.0, "verify_steps": 64.0}
    sample = make_sample({f"stoker_engine_{name}": value for name, value in values.items()}, None, Asked(0, 1, 0, 0), "")
    assert (sample.drafted, sample.accepted, sample.running) == (191, 190, None)


def test_a_quantile_is_of_what_was_counted_between_two_looks() -> None:
    infinite = float("inf")
    before = ((0.05, 1000.0), (0.1, 1000.0), (0.2, 1000.0), (infinite, 1000.0))
    now = ((0.05, 1950.0), (0.1, 1980.0), (0.2, 1999.0), (infinite, 2000.0))
    assert high_quantile(before, now) == 0.2
    assert high_quantile(now, now) is None
    assert high_quantile(now, before) is None
    assert high_quantile((), now) is None


@pytest.mark.parametrize(
    ("settings", "method"),
    [
        ((("--speculative-algorithm", "EAGLE"),), "eagle"),
        ((("--speculative-algorithm", "NGRAM"),), "ngram"),
        ((("speculation_type", "ngram-simple"),), "ngram"),
        ((("--speculative-config.method", "mtp"),), "mtp"),
        ((("draft_model", "/m/draft.gguf"),), "on"),
        ((("context", 4096),), "off"),
    ],
)
def test_a_method_is_read_from_the_plan(settings: tuple[tuple[str, Any], ...], method: str) -> None:
    said = tuple(Setting(name, value, "test") for name, value in settings)
    plan = Plan("p", "coder", "m", "/m", "r", "vllm", None, 0, said, 0, "")
    assert method_of(plan) == method
