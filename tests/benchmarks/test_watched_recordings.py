"""Watching what was recorded of a real llama.cpp: faults are found sooner than by the published rule, and health is none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from benchmarks.watched_cases import AS_RECORDED, DRAFT, OTHER, RECORDED_FAULTS, RECORDED_HEALTHY, AsRecorded
from benchmarks.watched_load import DAY_S, STEP_S
from benchmarks.watched_recording import COUNTERS, KINDS
from benchmarks.watched_replay import play_as_recorded, play_on, read_looks
from benchmarks.watched_rules import watch

METHOD = "draft-simple"
FAULTS = [case for case in RECORDED_FAULTS if case.days <= 6]
MONTH = RECORDED_HEALTHY[2]  # with a restart each night
WEEK_DAYS = 7


@pytest.mark.parametrize("case", AS_RECORDED, ids=lambda case: case.name)
def test_what_follows_a_recording_is_told_by_its_name_and_not_before(case: AsRecorded) -> None:
    begins_s = len(read_looks(case.played[0])) * STEP_S
    seen = watch(play_as_recorded(case.played, case.is_other_launch), METHOD)
    told = [(at_s, alert) for at_s, alert in seen.ours if alert in (*DRAFT, *OTHER)]
    assert bool(told) == bool(case.wanted)
    assert all(at_s >= begins_s and alert in case.wanted for at_s, alert in told)
    if told:
        assert told[0][0] < min(seen.published, default=float("inf"))


@pytest.mark.parametrize("number", range(len(FAULTS)), ids=[case.name for case in FAULTS])
def test_a_fault_in_a_week_that_is_made_of_recordings_is_found(number: int) -> None:
    case = FAULTS[number]
    told = [
        (at_s, alert)
        for at_s, alert in watch(play_on(case.load, case.trouble, case.days, 1), METHOD).ours
        if alert in DRAFT + OTHER
    ]
    assert told
    assert all(at_s >= case.fault_s and alert in case.wanted for at_s, alert in told)


def test_a_healthy_week_of_recordings_with_nightly_restarts_says_nothing() -> None:
    seen = watch(play_on(MONTH.load, MONTH.trouble, WEEK_DAYS, 1), METHOD)
    assert [alert for _, alert in seen.ours if alert in DRAFT] == []


def test_a_night_and_a_gap_are_in_what_is_played_on() -> None:
    gap = (1 * DAY_S, 1.5 * DAY_S)
    looks = [sample for sample, _ in play_on(MONTH.load, replace(MONTH.trouble, gaps_s=(gap,)), 2, 1)]
    assert not [one for one in looks if gap[0] <= one.at_s < gap[1]]
    night = {one.work for one in looks if 20 * 3600 <= one.at_s < DAY_S}
    assert len(night) == 1
    assert looks[-1].launch == 2, "the engine was started anew in the second night"


@pytest.mark.parametrize("name", KINDS)
def test_a_recording_is_whole_and_possible(name: str) -> None:
    looks = read_looks(name)
    assert len(looks) == KINDS[name].looks
    assert {look.launch for look in looks} == ({1, 2} if name == "code" else {1})
    for look in looks:
        grew = dict(zip(COUNTERS, look.grew, strict=True))
        assert min(look.grew) >= 0
        assert grew["accepted"] <= grew["drafted"]
