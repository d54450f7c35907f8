"""What Prometheus is told of the daemon's own judgement."""

from __future__ import annotations

from prometheus_client import Metric

from stoker.records.watching import Alert, AlertState, CanaryView
from stoker.watch.families.judged import judged_families
from stoker.watch.slots import Slot


def alert(name: str, about: str, state: AlertState = "firing") -> Alert:
    return Alert(name, about, "warning", "t", "w", "f", state, 1.0)


def values(families: list[Metric], name: str) -> dict[tuple[str, ...], float]:
    return {
        tuple(sample.labels.values()): sample.value
        for family in families for sample in family.samples if sample.name == name
    }  # fmt: skip


def test_what_fires_is_told_with_whom_it_is_about_and_what_is_held_is_not() -> None:
    alerts = [alert("canary-slow", "coder"), alert("disk-full", "models"), alert("errors", "coder", "held")]
    told = values(list(judged_families(alerts, {}, {})), "stoker_alert_firing")
    assert told == {("canary-slow", "coder", "", "warning"): 1.0, ("disk-full", "", "models", "warning"): 1.0}


def test_what_canary_prompts_did_not_tell_is_not_there_rather_than_zero() -> None:
    families = list(judged_families([], {"coder": CanaryView(5.0, 0.1, 0.05, None)}, {}))
    assert values(families, "stoker_canary_output_token_seconds") == {("coder",): 0.05}
    assert values(families, "stoker_canary_accept_rate") == {}
    assert values(families, "stoker_canary_last_timestamp_seconds") == {("coder",): 5.0}


def test_drafts_by_content_are_counters() -> None:
    families = list(judged_families([], {}, {"coder": {"code": Slot(40, 30, 12, 5, 50)}}))
    told = {
        name: values(families, f"stoker_content_{name}_total")
        for name in ("draft_tokens", "accepted_tokens", "verify_steps")
    }
    assert told == {
        "draft_tokens": {("coder", "code"): 40},
        "accepted_tokens": {("coder", "code"): 30},
        "verify_steps": {("coder", "code"): 12},
    }
