"""How the hits of a diagnosis are counted."""

from __future__ import annotations

from benchmarks.diagnosing_hits import GROUPS, diagnose_all, find_logs, first_told, read_expected, verdict, verdicts

FULL = ["certain", "disk-full"]
MAYBE = ["possible", "disk-full"]
OTHER = ["likely", "port-taken"]


def test_a_first_finding_is_right_where_it_names_the_cause_however_sure_it_is() -> None:
    assert verdict("certain disk-full", [FULL, OTHER]) == "right"
    assert verdict("certain disk-full", [MAYBE]) == "right"
    assert verdict("certain disk-full", [OTHER, FULL]) == "other"


def test_not_to_know_is_right_where_nobody_can_and_silent_where_there_is_a_cause() -> None:
    assert verdict("nothing", []) == "unknown"
    assert verdict("nothing", [MAYBE]) == "unknown"
    assert verdict("nothing", [FULL]) == "other"
    assert verdict("certain disk-full", [["possible", "port-taken"]]) == "silent"


def test_logs_that_were_tried_before_the_rules_were_mended_keep_what_was_told_then() -> None:
    kept = next(group for group in GROUPS if group.before is None and group.written is None)
    files = find_logs(kept)
    told = first_told(files)
    assert len(files) >= 40
    assert all(read_expected(file)[0]["cause"] for file in files)
    before = verdicts(files, told)
    now = verdicts(files, diagnose_all(files, None))
    assert before["right"] < now["right"]
    assert now["wrong"] == now["other"] == 0
