"""Alerts: held, firing, resolved, silenced."""

from __future__ import annotations

import pytest

from stoker.records.watching import Alert, Silence
from stoker.watch.book import AlertBook, Clock
from stoker.watch.table import Looked, alerts_by_id

KEY = "accept-rate-dropped", "coder"  # fires after 300 s


class Day:
    """A book and a clock; the clock on the wall may be set."""

    def __init__(self) -> None:
        self.book = AlertBook(alerts_by_id())
        self.at_s, self.epoch = 1000.0, 1.7e9

    def look(self, why: str | None, after_s: float = 15.0, key: tuple[str, str] = KEY) -> list[Alert]:
        """Looks a while later."""
        self.at_s, self.epoch = self.at_s + after_s, self.epoch + after_s
        return self.book.take({key: why}, self.clock)

    @property
    def clock(self) -> Clock:
        """The moment."""
        return Clock(self.at_s, self.epoch)

    def states(self) -> list[str]:
        """What the alerts are."""
        return [one.state for one in self.book.alerts(self.epoch)]


def test_it_fires_once_it_was_so_for_long_enough_and_says_so_once() -> None:
    day = Day()
    assert day.look("it is 0.10") == []
    assert day.look("it is 0.10", 299) == []
    assert day.states() == ["held"]
    fired = day.look("it is 0.09", 1)
    assert [(one.id, one.about, one.state, one.why) for one in fired] == [(*KEY, "firing", "it is 0.09")]
    assert fired[0].title == "accept_rate of coder fell far below its usual one"
    assert "stoker switch coder" in fired[0].fix
    assert day.look("it is 0.09") == []


def test_what_ends_before_it_fires_is_told_to_nobody() -> None:
    day = Day()
    day.look("it is 0.10")
    assert day.look(None) == []
    assert day.states() == []


def test_what_flaps_is_one_alert_and_over_when_it_stays_away() -> None:
    day = Day()
    day.look("low")
    assert [one.state for one in day.look("low", 300)] == ["firing"]
    for _ in range(5):
        assert day.look(None, 100) == []
        assert day.look("low", 100) == []
    over = [alert for _ in range(4) for alert in day.look(None, 100)]
    assert [one.state for one in over] == ["resolved"]
    assert over[0].resolved == day.epoch - 100
    assert day.states() == []


def test_what_was_not_looked_at_stays_as_it_is() -> None:
    day = Day()
    day.look("low")
    day.look("low", 300)
    day.look(None, 36000, ("queue-long", "coder"))
    assert day.states() == ["firing"]


def test_a_clock_that_is_set_back_changes_nothing_but_what_is_shown() -> None:
    day = Day()
    day.look("low")
    day.epoch -= 1e6
    assert day.look("low", 299) == []
    assert [one.state for one in day.look("low", 1)] == ["firing"]


def test_what_is_silenced_is_watched_and_says_until_when() -> None:
    day = Day()
    day.book.silence(Silence("*", "coder", day.epoch + 1000))
    day.look("low")
    fired = day.look("low", 300)
    assert fired[0].silenced_until is not None
    assert day.book.alerts(day.epoch + 1000)[0].silenced_until is None


def test_a_silence_of_another_service_is_none() -> None:
    day = Day()
    day.book.silence(Silence("accept-rate-dropped", "other", day.epoch + 1000))
    day.look("low")
    assert day.look("low", 300)[0].silenced_until is None


def test_a_silence_that_is_ended_is_over() -> None:
    day = Day()
    day.book.silence(Silence("*", "*", day.epoch + 1000))
    day.book.silence(Silence("*", "*", day.epoch))
    assert day.book.silences(day.epoch) == ()


def test_what_fired_under_a_former_daemon_goes_on_and_is_not_told_again() -> None:
    day, after = Day(), Day()
    day.look("low")
    fired = day.look("low", 300)
    after.book.resume(fired, after.clock)
    assert after.look("low") == []
    assert after.states() == ["firing"]
    assert [one.state for one in after.look(None, 300)] == ["resolved"]


def test_what_concerns_a_service_that_is_gone_is_over() -> None:
    day = Day()
    day.look("low")
    day.look("low", 300)
    assert [one.state for one in day.book.drop("coder", day.clock)] == ["resolved"]
    assert day.states() == []


@pytest.mark.parametrize(("severity", "key"), [("critical", ("memory-floor", "")), ("info", ("disk-trend", "state"))])
def test_an_alert_has_the_severity_of_its_table(severity: str, key: tuple[str, str]) -> None:
    book, looked = AlertBook(alerts_by_id()), Looked({key: "so it is"})
    book.take(looked, Clock(0, 0))
    assert book.alerts(0)[0].severity == severity
