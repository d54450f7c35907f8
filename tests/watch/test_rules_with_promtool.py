"""Prometheus's rules, as the real promtool sees them: each fires on its fault, and not on a health that looks like it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from alert_cases import CASES, Case, Series
from real_tools import need
from stoker.records.alerting import AlertRule, AlertTable
from stoker.watch.alerts import load_alerts
from stoker.watch.prometheus.rules import render_rules
from stoker.watch.prometheus.settings import Target, render_alertmanager, render_prometheus

ALERTS = {alert.id: alert for alert in load_alerts().alert}


def check(*words: str, folder: Path) -> str:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def asked(series: Series, alert: AlertRule, minutes: int, count: int) -> dict[str, object]:
    """Returns a test of promtool's: so many of an alert fire after so many minutes."""
    firing = f'count(ALERTS{{alertname="{alert.name}",alertstate="firing"}})'
    expected = [{"labels": "{}", "value": count}] if count else []
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [{"expr": firing, "eval_time": f"{minutes}m", "exp_samples": expected}],
    }


def write_tests(folder: Path, alerts: Iterable[AlertRule], *tests: dict[str, object]) -> None:
    """Writes tests of some alerts, looked at once a minute as the series are: four times would find the same."""
    rules = render_rules(AlertTable(load_alerts().record, tuple(alerts)))
    (folder / "rules.yml").write_text(rules.replace("interval: 15s", "interval: 1m"))
    tree = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": list(tests)}
    (folder / "tests.yml").write_text(yaml.safe_dump(tree, sort_keys=False))


def test_every_alert_has_its_case() -> None:
    assert CASES.keys() == ALERTS.keys()


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_fires_on_its_fault_and_not_on_health(name: str, tmp_path: Path) -> None:
    alert, case = ALERTS[name], CASES[name]
    fires, rests = asked(case.fault, alert, case.minutes, case.alerts), asked(case.health, alert, case.minutes, 0)
    write_tests(tmp_path, [alert], fires, rests)
    check(need("promtool"), "test", "rules", "tests.yml", folder=tmp_path)


def test_promtool_sees_an_alert_that_does_not_fire(tmp_path: Path) -> None:
    alert, case = ALERTS["errors"], CASES["errors"]
    write_tests(tmp_path, [alert], asked(case.health, alert, case.minutes, 1))
    done = subprocess.run(
        [need("promtool"), "test", "rules", "tests.yml"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1 and "exp:" in done.stdout + done.stderr


def test_the_seeds_alert_fires_where_only_the_gauge_is_there(tmp_path: Path) -> None:
    labels = 'service="coder",engine="sglang"'
    gauge = {f"stoker_engine_accept_rate{{{labels}}}": "0.1x60", f"stoker_engine_requests_running{{{labels}}}": "1x60"}
    idle = gauge | {f"stoker_engine_requests_running{{{labels}}}": "0x60"}  # the gauge keeps its last value
    alert = ALERTS["sglang-speculation-degraded"]
    write_tests(tmp_path, [alert], asked(gauge, alert, 40, 1), asked(idle, alert, 40, 0))
    check(need("promtool"), "test", "rules", "tests.yml", folder=tmp_path)


def test_nothing_fires_while_all_is_well(tmp_path: Path) -> None:
    healthy: Series = {}
    for name in (
        "accept-rate-decayed",
        "engine-metrics-vanished",
        "memory-stalled",
        "gpu-clock-stuck",
        "errors",
        "disk-full",
    ):
        healthy |= CASES[name].health
    test = asked(healthy, ALERTS["errors"], 25, 0)
    test["promql_expr_test"] = [
        {"expr": 'ALERTS{alertstate="firing"}', "eval_time": f"{at}m", "exp_samples": []} for at in (5, 20, 25, 300)
    ]
    write_tests(tmp_path, ALERTS.values(), test)
    check(need("promtool"), "test", "rules", "tests.yml", folder=tmp_path)


@pytest.mark.parametrize("scale", [1.0, 1 / 60, 1 / 300, 2.5])
def test_promtool_and_amtool_take_all_files_at_every_scale(scale: float, tmp_path: Path) -> None:
    (tmp_path / "stoker-rules.yml").write_text(render_rules(load_alerts(), scale))
    (tmp_path / "stoker.key").write_text("k")
    target = Target("127.0.0.1:8700", services=("coder",))
    (tmp_path / "prometheus.yml").write_text(render_prometheus(target, scale=scale))
    (tmp_path / "alertmanager.yml").write_text(render_alertmanager("http://127.0.0.1:9/x", scale))
    found = len(ALERTS) + len(load_alerts().record)
    assert f"{found} rules found" in check(need("promtool"), "check", "rules", "stoker-rules.yml", folder=tmp_path)
    check(need("promtool"), "check", "config", "prometheus.yml", folder=tmp_path)
    check(need("amtool"), "check-config", "alertmanager.yml", folder=tmp_path)


def test_a_case_is_a_case_only_where_fault_and_health_differ() -> None:
    assert all(isinstance(case, Case) and case.fault != case.health for case in CASES.values())
