"""How long a fetch waits for a hub, what it says meanwhile, and how far it is."""

from __future__ import annotations

import threading
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as any_of

from stoker.cli.fetch_text import progress_text
from stoker.errors import NotReadyInTime, WrongUse
from stoker.fetch.meter import Meter, Progress, rate_of
from stoker.fetch.patience import LONGEST_STEP_S, Patience, Stopped, read_retry_after, step_s
from stoker.fetch.wire import find_endpoint
from stoker.records import GIB, MIB
from support import fails


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("30", 30.0), (" 7 ", 7.0), ("0", 0.0), ("", None), ("soon", None), ("-3", None), ("1.5", None),
     (formatdate(1000.0, usegmt=True), 900.0), (formatdate(1.0, usegmt=True), 0.0)],
)  # fmt: skip
def test_retry_after_is_a_number_or_a_date(said: str, seconds: float | None) -> None:
    assert read_retry_after({"retry-after": said}, now=100.0) == seconds


@given(any_of.text(max_size=60))
def test_no_retry_after_breaks_it(said: str) -> None:
    found = read_retry_after({"retry-after": said}, now=100.0)
    assert found is None or found >= 0


@given(any_of.integers(1, 1000))
def test_waits_grow_up_to_a_limit(failures: int) -> None:
    assert 1 <= step_s(failures) <= step_s(failures + 1) <= LONGEST_STEP_S


def test_a_wait_beyond_the_limit_is_not_begun() -> None:
    told: list[str] = []
    with fails(NotReadyInTime, "the hub answers 429", "`patience_s` of [fetch] is 10 s", "goes on where it stopped"):
        Patience(10.0, told.append).wait(11.0, "the hub answers 429")
    assert told == []


def test_waits_at_the_same_time_count_once_and_are_told_once() -> None:
    told: list[str] = []
    patience = Patience(20.0, told.append)
    ends: list[BaseException] = []

    def wait() -> None:
        try:
            patience.wait(15.0, "busy")
        except BaseException as end:  # noqa: BLE001 - looked at below
            ends.append(end)

    workers = [threading.Thread(target=wait) for _ in range(4)]
    for worker in workers:
        worker.start()
    patience.stop.set()
    for worker in workers:
        worker.join()
    assert {type(end) for end in ends} == {Stopped}
    assert 15.0 <= patience.spent_s < 16.0


@given(any_of.floats(0.001, 1e6), any_of.integers(1, 2**50))
def test_a_rate_is_bytes_over_time(seconds: float, count: int) -> None:
    assert rate_of((0.0, 0), (seconds, count)) == pytest.approx(count / seconds)


def test_no_rate_is_said_where_nothing_came_or_no_time_passed() -> None:
    assert rate_of((1.0, 5), (1.0, 9)) is None
    assert rate_of((1.0, 5), (2.0, 5)) is None


def test_what_was_there_counts_as_fetched_and_not_as_rate() -> None:
    meter = Meter(100, 100)
    meter.found(60)
    assert (meter.read().fetched_bytes, meter.read().rate_bytes_s, meter.read().left_s) == (60, None, None)


def test_progress_is_told_in_bytes_rate_and_time_left() -> None:
    progress = Progress(3 * GIB, 70 * GIB, GIB, 70 * GIB, 100.0 * MIB, 686.0)
    assert progress_text(progress) == "3.0 GiB of 70.0 GiB fetched, 100.0 MiB/s, 11 min left; 1.0 GiB verified"
    assert progress_text(Progress(5, 10, 0, 10, None, None)) == "5 bytes of 10 bytes fetched; 0 bytes verified"


def test_the_hubs_address_is_yours_then_the_environments_then_the_public_one() -> None:
    assert find_endpoint("https://a/", "https://b") == "https://a"
    assert find_endpoint(None, "https://b/x/") == "https://b/x"
    assert find_endpoint(None, "") == "https://huggingface.co"
    with fails(WrongUse, "HF_ENDPOINT is no address", "https://HOST"):
        find_endpoint(None, "b")
