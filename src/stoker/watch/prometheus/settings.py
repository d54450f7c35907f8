"""Prometheus's and Alertmanager's own configuration: whom to ask, whom to tell. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from stoker.watch.prometheus.durations import say_duration
from stoker.watch.prometheus.rules import LEAST_S, pause_s
from stoker.watch.prometheus.text import render_yaml

RULES, KEY, CERTIFICATE = "stoker-rules.yml", "stoker.key", "stoker.crt"
JOB = "stoker"  # the alert `daemon-down` asks for it
ALERTMANAGER = "127.0.0.1:9093"
GROUP_WAIT_S, GROUP_EVERY_S, REPEAT_S = 10.0, 60.0, 4 * 3600.0
TIMEOUT_S = 10.0


class Target(NamedTuple):
    """The gateway as Prometheus reaches it; `services` are those whose engines' own metrics are wanted too."""

    address: str
    speaks_tls: bool = False
    services: Sequence[str] = ()


def render_prometheus(target: Target, alertmanager: str = ALERTMANAGER, scale: float = 1.0) -> str:
    """Returns a configuration that reads the gateway and loads our rules; file names are beside it."""
    every = say_duration(pause_s(scale))
    jobs = [_job(target, JOB, [{"targets": [target.address]}])]
    if target.services:  # an address's labels that begin with __param_ go into the query
        own = [{"targets": [target.address], "labels": {"__param_engine": one, "service": one}} for one in target.services]
        jobs.append(_job(target, f"{JOB}-engines", own))
    return render_yaml(
        {
            "global": {
                "scrape_interval": every,
                "scrape_timeout": say_duration(max(LEAST_S, TIMEOUT_S * scale)),
                "evaluation_interval": every,
            },
            "rule_files": [RULES],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]},
            "scrape_configs": jobs,
        }
    )


def _job(target: Target, name: str, static: list[dict[str, Any]]) -> dict[str, Any]:
    job: dict[str, Any] = {"job_name": name, "authorization": {"credentials_file": KEY}}
    if target.speaks_tls:
        job |= {"scheme": "https", "tls_config": {"ca_file": CERTIFICATE}}
    return job | {"static_configs": static}


def render_alertmanager(webhook: str | None, scale: float = 1.0) -> str:
    """Returns a route to a webhook, or to nobody; what is the reason for another alert keeps that one quiet."""
    receiver: dict[str, Any] = {"name": "stoker"}
    if webhook is not None:
        receiver["webhook_configs"] = [{"url": webhook, "send_resolved": True}]
    return render_yaml(
        {
            "route": {
                "receiver": "stoker",
                "group_by": ["alertname", "service"],
                "group_wait": say_duration(GROUP_WAIT_S * scale),
                "group_interval": say_duration(GROUP_EVERY_S * scale),
                "repeat_interval": say_duration(REPEAT_S * scale),
            },
            "inhibit_rules": [
                _quiets("service-down", "engine-.*|accept-.*|errors|ttft-slow|decode-slow|queue-long", ["service"]),
                _quiets("accept-rate-dropped", "accept-rate-decayed", ["service"]),
                _quiets("memory-floor", "memory-trend|swap-grows", []),
                _quiets("disk-full", "disk-trend", ["holds"]),
            ],
            "receivers": [receiver],
        }
    )


def _quiets(reason: str, others: str, equal: list[str]) -> dict[str, Any]:
    return {"source_matchers": [f'id="{reason}"'], "target_matchers": [f'id=~"{others}"'], "equal": equal}
