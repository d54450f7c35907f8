"""The table of alerts: what is in it holds together."""

from __future__ import annotations

import re

import pytest

from stoker.errors import StokerError
from stoker.rules.load import find_rule
from stoker.watch.alerts import expression_of, load_alerts, read_alerts
from stoker.watch.table import alerts_by_id

ENTRY = """
[[alert]]
id = "{id}"
name = "{name}"
title = "t"
expr = "a > $threshold"
threshold = {threshold}
for_s = 0
severity = "info"
because = "Somebody said so, in a place that can be read."
fix = "f"
"""


def test_every_alert_rests_on_rules_that_exist() -> None:
    assert all(find_rule(rule).id == rule for alert in load_alerts().alert for rule in alert.rules)


def test_prometheus_is_told_of_all_that_only_the_daemon_can_tell_and_that_is_more_than_information() -> None:
    named = {alert.id for alert in load_alerts().alert}
    inside = {one.id for one in alerts_by_id().values() if one.id not in named and one.severity != "info"}
    passed_on = re.search(r'alert=~"([^"]+)"', expression_by_id("daemon-judges"))
    assert passed_on is not None and set(passed_on[1].split("|")) == inside


def expression_by_id(alert: str) -> str:
    return next(one.expr for one in load_alerts().alert if one.id == alert)


def test_a_number_stands_in_every_condition_that_speaks_of_one() -> None:
    for alert in load_alerts().alert:
        assert ("$threshold" in alert.expr) == (alert.threshold is not None), alert.id
        assert "$" not in expression_of(alert)


def test_every_computed_series_is_defined_before_it_is_used() -> None:
    table, defined = load_alerts(), set[str]()
    for one in table.record:
        assert set(re.findall(r"stoker:\w+(?::\w+)?", one.expr)) <= defined, one.name
        defined.add(one.name)
    for alert in table.alert:
        assert set(re.findall(r"stoker:\w+(?::\w+)?", alert.expr)) <= defined, alert.id


@pytest.mark.parametrize("threshold", [2**30, 0.15, 1e5, 1e-9])
def test_a_number_keeps_its_value(threshold: float) -> None:
    alert = read_alerts("record = []\n" + ENTRY.format(id="a", name="Aa", threshold=threshold)).alert[0]
    assert float(expression_of(alert).removeprefix("a > ")) == threshold


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("record = []\n" + ENTRY.format(id="a", name="Aa", threshold=1) * 2, "Aa, a is there twice"),
        ("record = []\n" + ENTRY.format(id="a b", name="Aa", threshold=1), "matching regex"),
        ("record = []\n" + ENTRY.format(id="a", name="Aa", threshold="'x'"), "float"),
        ("record = []\nalert = []\nother = 1", "other"),
        ("record = [", "nvalid"),
    ],
)
def test_a_table_with_a_fault_is_not_read(text: str, said: str) -> None:
    with pytest.raises(StokerError) as refused:
        read_alerts(text)
    assert said in str(refused.value.why)
