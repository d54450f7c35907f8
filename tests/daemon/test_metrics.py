"""`/metrics` of a real daemon: valid for those who read it strictly, and told whatever an engine says."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from docs_pages.metrics import all_families
from prometheus_client import Metric
from prometheus_client.openmetrics import parser

from home import Home, wait_for
from real_tools import need
from stoker.watch.alerts import expression_of, load_alerts
from stoker.watch.prometheus.dashboard import load_rows, render_dashboard

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]
GOOD = "llamacpp:tokens_predicted_total 9\nllamacpp:requests_processing 0\n"
DRAFTS = (
    "llamacpp:spec_decode_num_draft_tokens_total {proposed}\nllamacpp:spec_decode_num_accepted_tokens_total {accepted}\n"
)
NAME = re.compile(r"(?<![\w:\"])(stoker_\w+|stoker:\w+(?::\w+)?)")


def read(home: Home, accept: str = "", path: str = "/metrics") -> httpx.Response:
    headers = {"authorization": f"Bearer {home.daemon.key}", "accept": accept}
    return httpx.get(f"{home.daemon.url}{path}", headers=headers, trust_env=False, timeout=20)


def chat(home: Home, model: str, pieces: int | None = None, **more: object) -> None:
    """Asks for a stream, and leaves after so many pieces."""
    body = {"model": model, "messages": [{"role": "user", "content": "Who are you?"}], "stream": True, **more}
    headers = {"authorization": f"Bearer {home.daemon.key}"}
    with httpx.stream(
        "POST", f"{home.daemon.url}/v1/chat/completions", json=body, headers=headers, trust_env=False
    ) as reply:
        assert reply.status_code == httpx.codes.OK
        for _ in itertools.islice(reply.iter_raw(), pieces):
            pass


def samples(home: Home) -> Samples:
    """Returns what a strict reader of OpenMetrics finds."""
    reply = read(home, OPENMETRICS)
    assert reply.status_code == 200 and reply.headers["content-type"].startswith("application/openmetrics-text")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families(reply.text) for sample in family.samples
    }  # fmt: skip


def families(text: str) -> Iterator[Metric]:
    """Reads OpenMetrics, strictly."""
    found: Iterator[Metric] = parser.text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    return found


def of(found: Samples, name: str, **labels: str) -> float | None:
    """Returns the one sample of a name that has these labels."""
    values = [value for (one, its), value in found.items() if one == name and labels.items() <= dict(its).items()]
    return values[0] if values else None


def test_a_strict_reader_takes_the_whole_page_and_finds_what_a_request_was(demo: Home) -> None:
    question = [{"role": "user", "content": "Write a long story."}]  # which does not come in one piece
    chat(demo, demo.service("demo").model, stream_options={"include_usage": True}, messages=question, max_tokens=200)
    found = samples(demo)
    streams = of(found, "stoker_service_ttft_seconds_count", service="demo")
    assert streams and streams == of(found, "stoker_service_ttft_seconds_bucket", service="demo", le="+Inf")
    assert (of(found, "stoker_service_output_token_seconds_sum", service="demo") or 0) > 0
    assert (of(found, "stoker_engine_generated_tokens_total", service="demo", engine="llamacpp") or 0) > 0
    assert of(found, "stoker_engine_up", service="demo") == 1
    assert of(found, "stoker_service_launches_total", service="demo") == 1
    assert (
        (of(found, "stoker_machine_memory_available_bytes") or 0) > (of(found, "stoker_machine_memory_floor_bytes") or 0) > 0
    )
    assert (of(found, "stoker_disk_free_bytes", holds="models") or 0) > 0
    assert {value for (name, _), value in found.items() if name == "stoker_engine_metrics_problem"} == {0}


def test_promtool_finds_nothing_to_mend(demo: Home) -> None:
    done = subprocess.run(
        [need("promtool"), "check", "metrics"], input=read(demo).content, capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_nothing_is_told_that_the_documented_schema_lacks(demo: Home) -> None:
    known = {family.name: family.type for family in all_families()}
    told = {family.name: family.type for family in families(read(demo, OPENMETRICS).text)}
    assert told.items() <= known.items()


def test_all_that_alerts_and_dashboard_look_at_is_there() -> None:
    table = load_alerts()
    there = {one.name for one in table.record}
    for family in all_families():
        ends = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}.get(family.type, [""])
        there |= {f"{family.name}{end}" for end in ends}
    asked = [expression_of(one) for one in table.alert] + [one.expr for one in table.record]
    asked += [expr for row in load_rows() for panel in row.panel for expr in panel.exprs]
    for expr in asked:
        assert set(NAME.findall(re.sub(r'"[^"]*"', "", expr))) <= there, expr
    assert len(json.loads(render_dashboard())["panels"]) == sum(1 + len(row.panel) for row in load_rows())


def test_an_engines_own_page_is_passed_on_as_it_is(demo: Home) -> None:
    reply = read(demo, path="/metrics?engine=demo")
    assert reply.status_code == 200 and "llamacpp:tokens_predicted_total" in reply.text
    assert "stoker_" not in reply.text
    unknown = read(demo, path="/metrics?engine=nobody")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "unknown_service")
    assert "there is no service called `nobody`" in unknown.json()["error"]["message"]


@pytest.fixture
def telling(home: Home, tmp_path: Path) -> Iterator[Path]:
    """The file with what the engine of the service `odd` says at /metrics, which is what it should be at first."""
    page = tmp_path / "page.txt"
    page.write_text(GOOD)
    home.add_fake("odd", metrics=str(page))
    home.run("up", "odd")
    assert of(samples(home), "stoker_engine_generated_tokens_total", service="odd") == 9
    yield page


def say(page: Path, text: str) -> None:
    """Changes what an engine says, whole at once."""
    fresh = page.with_suffix(".new")
    fresh.write_text(text)
    fresh.rename(page)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x" * 10 * 1024**2, "too large"),
        (GOOD.replace("9", "NaN"), "not a number"),
        (GOOD.replace("9", "3"), "went back"),
        (GOOD.replace("tokens_predicted_total", "tokens_made_total"), "vanished"),
        (GOOD + DRAFTS.format(proposed=1, accepted=7), "impossible"),
        ("<html>a login page</html>", "unknown names"),
    ],
)  # fmt: skip
def test_what_an_engine_says_that_cannot_be_is_told_and_the_page_comes_all_the_same(
    home: Home, telling: Path, text: str, problem: str
) -> None:
    say(telling, text)
    wait_for(problem, lambda: of(samples(home), "stoker_engine_metrics_problem", service="odd", problem=problem) == 1)
    assert of(samples(home), "stoker_service_state", service="odd", state="READY") == 1
    assert f"service=odd its engine's metrics cannot be relied on: {problem}" in home.paths.daemon_log.read_text()
    home.run("ask", "Hello", "--model", "odd")


def test_an_engines_page_that_does_not_come_is_an_error_that_says_why(home: Home, telling: Path) -> None:
    say(telling, "x" * 10 * 1024**2)
    reply = read(home, path="/metrics?engine=odd")
    assert (reply.status_code, reply.json()["error"]["code"]) == (502, "no_engine_metrics")
    assert "more than 4 MiB" in reply.json()["error"]["message"]


def test_an_engine_that_says_nothing_holds_the_page_up_for_no_longer_than_its_limit(home: Home, telling: Path) -> None:
    telling.unlink()
    wait_for("it to be missed", lambda: of(samples(home), "stoker_engine_up", service="odd") == 0)
    found = samples(home)
    assert of(found, "stoker_engine_metrics_problem", service="odd", problem="unreachable") == 1
    assert of(found, "stoker_engine_generated_tokens_total", service="odd") is None  # unknown is not what it was
    say(telling, GOOD)
    wait_for("it to be back", lambda: of(samples(home), "stoker_engine_up", service="odd") == 1)


def test_a_client_that_leaves_is_counted(home: Home) -> None:
    home.add_fake("slow", stream_gate=str(home.folder / "never"))
    home.run("up", "slow")
    before = of(samples(home), "stoker_service_departures_total", service="slow") or 0
    chat(home, "slow", pieces=1)
    wait_for("the departure", lambda: of(samples(home), "stoker_service_departures_total", service="slow") == before + 1)
    assert (of(samples(home), "stoker_service_ttft_seconds_count", service="slow") or 0) > 0
    assert of(samples(home), "stoker_service_output_token_seconds_count", service="slow") is None
