"""Shows what Prometheus, Alertmanager and Grafana need, and writes it into a folder of the user's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from stoker.config import Config, find_paths, read_config
from stoker.errors import Refused, WrongUse
from stoker.gateway.hosts import reachable
from stoker.records import Record, RenderedFile
from stoker.records.alerting import PrometheusView
from stoker.watch.alerts import load_alerts
from stoker.watch.prometheus.dashboard import render_dashboard
from stoker.watch.prometheus.rules import render_rules
from stoker.watch.prometheus.settings import CERTIFICATE, KEY, RULES, Target, render_alertmanager, render_prometheus
from stoker.watch.prometheus.text import OURS
from stoker.written_paths import expand_home

FOLDER = "/etc/prometheus"
DASHBOARD = "stoker-dashboard.json"
SETTINGS, ROUTES = "prometheus.yml", "alertmanager.yml"
ADDRESS = re.compile(r"(\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+):\d{1,5}")


class Wanted(Record, frozen=True):
    """What a person asks for: where to, from where, and how fast; see `stoker install prometheus --help`."""

    webhook: str | None = None
    alertmanager: str = "127.0.0.1:9093"
    gateway: str | None = None
    engine_metrics: bool = False
    scale: float = 1.0


def show_prometheus(wanted: Wanted) -> PrometheusView:
    """Returns the files, and the commands that put them in place; raises WrongUse for addresses that are none."""
    paths = find_paths()
    config = read_config(paths.config)
    services = tuple(config.services) if wanted.engine_metrics else ()
    speaks_tls = config.gateway.tls_certificate is not None
    target = Target(_address(wanted.gateway or _own_address(config)), speaks_tls, services)
    texts = {
        SETTINGS: render_prometheus(target, _address(wanted.alertmanager), wanted.scale),
        RULES: render_rules(load_alerts(), wanted.scale),
        ROUTES: render_alertmanager(_webhook(wanted.webhook), wanted.scale),
        DASHBOARD: render_dashboard(),
    }
    files = tuple(
        RenderedFile(f"{FOLDER}/{name}", "0640" if name == ROUTES else "0644", text) for name, text in texts.items()
    )
    return PrometheusView(files, tuple(_commands(config)), tuple(_notes(wanted)))


def _own_address(config: Config) -> str:
    if config.gateway.port == 0:
        raise WrongUse(
            "Prometheus cannot know where the gateway listens",
            why="gateway.port is 0 in stoker.toml, which takes another port each time",
            next_step="set gateway.port, or say --gateway HOST:PORT",
        )
    host = reachable(config.gateway.host)
    return f"{f'[{host}]' if ':' in host else host}:{config.gateway.port}"


def _address(said: str) -> str:
    if ADDRESS.fullmatch(said) is None:
        raise WrongUse(f"`{said}` is no address", next_step="write HOST:PORT, such as 127.0.0.1:9093")
    return said


def _webhook(said: str | None) -> str | None:
    if said is not None and (urlsplit(said).scheme not in ("http", "https") or not urlsplit(said).hostname):
        raise WrongUse(f"`{said}` is no address of a webhook", next_step="write http://HOST:PORT/PATH")
    return said


def _commands(config: Config) -> Iterator[str]:
    """Yields what root would type in a folder that holds the files under their own names."""
    yield f"promtool check rules {RULES}"
    yield f"(umask 077; stoker keys add prometheus --metrics > {KEY})"
    yield f"sudo install -m 0640 -g prometheus {KEY} {FOLDER}/"
    if config.gateway.tls_certificate is not None:
        yield f"sudo install -m 0644 {config.gateway.tls_certificate} {FOLDER}/{CERTIFICATE}"
    yield f"sudo install -m 0644 {SETTINGS} {RULES} {FOLDER}/"
    yield f"sudo install -m 0640 -g prometheus {ROUTES} {FOLDER}/"
    yield f"promtool check config {FOLDER}/{SETTINGS}"
    yield "sudo systemctl restart prometheus prometheus-alertmanager"


def _notes(wanted: Wanted) -> Iterator[str]:
    yield f"A {SETTINGS} or {ROUTES} of your own: add `rule_files`, the jobs and the route of ours to it instead."
    yield f"Grafana: Dashboards, New, Import, {DASHBOARD}."
    yield f"{KEY} opens /metrics alone; `stoker keys revoke prometheus` ends it."
    if wanted.webhook is None:
        yield "Without --webhook Alertmanager shows alerts on its own page, and tells nobody."


def write_files(view: PrometheusView, folder: str) -> None:
    """Writes the files under their own names; raises Refused where another's would be lost, before anything is written."""
    place = expand_home(folder)
    wanted = {place / Path(file.path).name: file for file in view.files}
    strange = [str(path) for path in wanted if path.exists() and not _is_ours(path)]
    if strange:
        raise Refused(
            f"{', '.join(strange)} would be lost", why="Stoker did not write it", next_step="name another folder with --to"
        )
    try:
        place.mkdir(parents=True, exist_ok=True)
        for path, file in wanted.items():
            path.write_text(file.text)
            path.chmod(int(file.mode, 8))
    except OSError as problem:
        raise WrongUse(f"the files cannot be written to {place}", why=problem.strerror or str(problem)) from problem


def _is_ours(path: Path) -> bool:
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return False
    return text.startswith(OURS) or '"uid": "stoker"' in text
