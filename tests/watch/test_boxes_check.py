"""Which linked boxes an alert tells of."""

from __future__ import annotations

from stoker.records.boxes import BoxView
from stoker.watch.book import AlertBook, Clock
from stoker.watch.boxes import AWAY, BoxesCheck
from stoker.watch.table import alerts_by_id

START = 1_800_000_000.0
FOR_S = alerts_by_id()[AWAY].for_s


def box(name: str, *, is_here: bool) -> BoxView:
    return BoxView(name, "10.0.0.2:8701", is_here, START, "" if is_here else "it closed the connection", False, ())


def test_a_box_that_is_away_is_told_with_why_and_one_that_was_removed_is_so_no_more() -> None:
    check = BoxesCheck()
    looked = check.look([box("b", is_here=True), box("c", is_here=False)])
    assert looked[AWAY, "b"] is None
    assert (looked[AWAY, "c"] or "").startswith("it closed the connection")
    assert check.look([box("b", is_here=True)]) == {(AWAY, "b"): None, (AWAY, "c"): None}


def test_what_was_told_of_a_box_ends_also_where_its_link_went_with_a_former_daemon() -> None:
    book, check = AlertBook(alerts_by_id()), BoxesCheck()
    book.take(check.look([box("b", is_here=False)]), Clock(0.0, START), {})
    (told,) = book.take(check.look([box("b", is_here=False)]), Clock(FOR_S + 1.0, START), {})
    book, check = AlertBook(alerts_by_id()), BoxesCheck()
    book.resume([told], Clock(0.0, START))
    check.remember([told])
    assert book.take(check.look([]), Clock(1.0, START), {}) == []
    (over,) = book.take(check.look([]), Clock(10 * FOR_S, START), {})
    assert (over.about, over.state) == ("b", "resolved")


def test_how_long_a_box_is_away_is_counted_by_no_clock_on_a_wall() -> None:
    book, check = AlertBook(alerts_by_id()), BoxesCheck()
    away = [box("b", is_here=False)]
    assert book.take(check.look(away), Clock(0.0, START), {}) == []
    day_later = Clock(1.0, START + 86400.0)  # somebody set the clock
    assert book.take(check.look(away), day_later, {}) == []
    (alert,) = book.take(check.look(away), Clock(FOR_S + 1.0, START - 86400.0), {})
    assert (alert.id, alert.about, alert.state, alert.title) == (AWAY, "b", "firing", "the box b is away")
