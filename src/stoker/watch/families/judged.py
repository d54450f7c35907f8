"""What the daemon itself made of what it saw: alerts that fire, its canary prompts, and drafts by content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from stoker.records.watching import Alert, CanaryView
from stoker.watch.slots import Slot
from stoker.watch.table import alerts_by_id

CANARY = {
    "at": ("stoker_canary_last_timestamp_seconds", "When canary prompts were last answered, since the epoch."),
    "ttft_s": ("stoker_canary_ttft_seconds", "Mean TTFT of the last canary prompts."),
    "token_s": ("stoker_canary_output_token_seconds", "Mean time of their tokens after the first."),
    "accept_rate": ("stoker_canary_accept_rate", "Accepted / proposed draft tokens of the last canary prompts."),
}


CONTENT = {
    "drafted": ("stoker_content_draft_tokens", "Proposed draft tokens, while all requests were of one content."),
    "accepted": ("stoker_content_accepted_tokens", "Accepted draft tokens, while all requests were of one content."),
    "steps": ("stoker_content_verify_steps", "Verify steps, while all requests were of one content."),
}


def judged_families(
    alerts: Iterable[Alert], canaries: Mapping[str, CanaryView], contents: Mapping[str, Mapping[str, Slot]]
) -> Iterator[Metric]:
    """Yields a series for each alert that fires, silenced or not, each service's last canary prompts, and its contents."""
    firing = GaugeMetricFamily(
        "stoker_alert_firing", "1 for each alert of the daemon's that fires, and what it is about where that is no service.",
        labels=["alert", "service", "about", "severity"],
    )  # fmt: skip
    for one in alerts:
        if one.state == "firing":
            is_of_service = "{service}" in alerts_by_id()[one.id].title
            whom = [one.about, ""] if is_of_service else ["", one.about]
            firing.add_metric([one.id, *whom, one.severity], 1.0)
    yield firing
    for field, (name, what) in CANARY.items():
        family = GaugeMetricFamily(name, what, labels=["service"])
        for service, view in canaries.items():
            if (value := getattr(view, field)) is not None:
                family.add_metric([service], value)
        yield family
    for field, (name, what) in CONTENT.items():
        counter = CounterMetricFamily(name, what, labels=["service", "content"])
        for service, totals in contents.items():
            for content, seen in totals.items():
                counter.add_metric([service, content], getattr(seen, field))
        yield counter
