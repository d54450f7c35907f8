"""`docs/metrics.md` and `docs/alerts.md`: what `/metrics` tells, from the collectors themselves, and the table of alerts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import Metric

from stoker.engines import find, names
from stoker.flows.boxes.families import box_families
from stoker.gateway.meter import Meter
from stoker.gateway.metrics import GatewayMetrics
from stoker.records.alerting import AlertRule, RecordingRule
from stoker.watch.alerts import expression_of, load_alerts
from stoker.watch.engine_series import ENGINE_SERIES
from stoker.watch.families.engines import engine_families
from stoker.watch.families.judged import judged_families
from stoker.watch.families.machine import MachineSeen, machine_families
from stoker.watch.families.services import service_families
from stoker.watch.prometheus.durations import say_duration
from stoker.watch.table import alerts_by_id

NOTE = "<!-- Written by tools/make_docs.py from the collectors in src/stoker. -->"
ALERTS_NOTE = "<!-- Written by tools/make_docs.py from src/stoker/watch/data/alerts.toml. -->"
METRICS = """\
`GET /metrics` of the daemon, with a key for metrics (`stoker keys add NAME --metrics`) or the owner's, answers in
Prometheus's text form, or in OpenMetrics where that is asked for. Units are base units: seconds, bytes, hertz, watts,
shares from 0 to 1. Labels are few: a service, an engine, a GPU, a status, a state. What is not known is not there, and
never 0. `/metrics?engine=SERVICE` passes on what that service's engine says, under its own names and unchanged.

An engine is asked at most once a second, for at most 3 s and 4 MiB. What cannot be relied on is told by
`stoker_engine_metrics_problem` and in the daemon's log: `unreachable`, `too large`, `unknown names` (nothing that
this engine is known to say), `not a number` (such values are left out), `went back` (a counter, within one process),
`impossible` (more accepted than proposed, a share over 1), `vanished` (it was there before).
"""
ENGINES = """\
Each line names where a series comes from; a second name is what older versions say. SGLang counts generated tokens
and verify calls as requests end, and says its accept_rate of the last interval alone:
[`stoker:accept_rate:15m`](alerts.md) is made of what there is.
"""
ALERTS = """\
One table for the alerts of the daemon and for Prometheus's rules (`stoker install prometheus`, see
[Prometheus](prometheus.md)). Conditions are PromQL over [these metrics](metrics.md) and over the series that stand
first here. Each is tested with the real promtool: it fires on its fault, and not on a health that looks like it.
"""
INSIDE = """\
These take more than Prometheus is given: what the daemon has learnt of each kind of work and of each start, and what it
asks by itself. `stoker_alert_firing` tells them all the same, and `daemon-judges` passes them on.
"""


def pages() -> dict[str, str]:
    """Returns the pages by their paths in `docs/`."""
    table = load_alerts()
    metrics = ["# Metrics", "", NOTE, "", METRICS, *_families(), "## Engines", "", ENGINES, *_engines()]
    series = [line for one in table.record for line in _record(one)]
    alerts = ["# Alerts", "", ALERTS_NOTE, "", ALERTS, "## Series", "", *series, "## Alerts", ""]
    alerts += [line for one in table.alert for line in _alert(one)]
    inside = [one for one in alerts_by_id().values() if one not in table.alert]
    alerts += ["## Alerts of the daemon alone", "", INSIDE, *(line for one in inside for line in _alert(one))]
    return {"metrics.md": "\n".join(metrics).rstrip() + "\n", "alerts.md": "\n".join(alerts).rstrip() + "\n"}


def all_families() -> list[Metric]:
    """Returns every family that the daemon tells, without values."""
    gateway = GatewayMetrics(list, "0")
    Meter(lambda record, left: None, gateway.registry)
    own = (
        engine_families(()),
        machine_families(MachineSeen()),
        service_families(()),
        judged_families((), {}, {}),
        box_families((), ()),
    )
    return sorted([*gateway.registry.collect(), *(one for part in own for one in part)], key=lambda family: family.name)


def _families() -> Iterator[str]:
    yield from ("| name | kind | labels | what |", "|---|---|---|---|")
    for family in all_families():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        yield f"| `{name}` | {family.type} | {', '.join(_labels(family))} | {family.documentation} |"
    yield ""


def _labels(family: Metric) -> Iterable[str]:
    named: Iterable[str] = getattr(family, "_labelnames", ())  # families keep them to themselves until they have values
    return named or (family.samples[0].labels if family.samples else ())


def _engines() -> Iterator[str]:
    yield from (f"| series | {' | '.join(names())} |", f"|---{'|---' * len(names())}|")
    for series in ENGINE_SERIES:
        cells = [", ".join(f"`{one}`" for one in _spelled(engine, series.neutral)) for engine in names()]
        yield f"| `{series.name}` | {' | '.join(cells)} |"


def _spelled(engine: str, neutral: Iterable[str]) -> Iterator[str]:
    known = find(engine)
    for name in neutral:
        yield from ([known.metrics[name]] if name in known.metrics else [])
        yield from known.former_metrics.get(name, ())


def _record(one: RecordingRule) -> list[str]:
    return [f"### {one.name}", "", f"{one.what} In {one.unit}.", "", "```text", one.expr.strip(), "```", ""]


def _alert(one: AlertRule) -> list[str]:
    held = f"for {say_duration(one.for_s)}" if one.for_s else "at once"
    rules = ", ".join(f"[{rule}](rules/{rule}.md)" for rule in one.rules)
    outside = " Only somebody outside the daemon can see this." if one.outside else ""
    there = f"; `{one.name}` in Prometheus" if one.expr else ""
    lines = [f"### {one.id}", "", f"**{one.severity}**, {held}{there}: {one.title}.{outside}", ""]
    lines += ["```text", expression_of(one), "```", ""] if one.expr else []
    lines += [f"**Why so.** {one.because}", "", f"**What to do.** {one.fix}", ""]
    return lines + ([f"**Known.** {rules}", ""] if rules else [])
