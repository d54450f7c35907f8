"""`stoker verify` as a person and a CI job meet it."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from control_client import call
from home import Home
from lying_engine import KEY, lying_engine


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    """The file with the engine's key."""
    file = tmp_path / "key.txt"
    file.write_text(f"{KEY}\n")
    return file


def test_an_address_is_proved_and_nothing_of_a_daemon_is_needed(home: Home, key_file: Path) -> None:
    with lying_engine() as engine:
        said = home.run("verify", "--url", f"{engine.url}/v1/", "--model", "honest", "--key-file", str(key_file)).stdout
    assert said.startswith(f"honest at {engine.url}/v1")
    assert "4 of 4 pass: tokens, named, logprobs, same twice" in said
    assert said.splitlines()[-1].startswith("pass: ")
    assert not home.daemon_answers


def test_what_failed_is_told_with_how_to_mend_it_and_ends_with_one(home: Home, key_file: Path) -> None:
    with lying_engine("no-done", "wrong-tool") as engine:
        words = ("--model", "honest", "--key-file", str(key_file), "--probe", "streaming", "--probe", "tools")
        said = home.run("verify", "--url", engine.url, *words, code=1).stdout
    assert "fail  order: it ends without [DONE], and clients wait on" in said
    assert "one by name: get_time was named, and it calls get_weather" in said
    assert "mend: ask the engine without what is in front of it" in said
    assert said.splitlines()[-1].startswith("fail: 2 fail, in ")


def test_no_time_is_no_pass(home: Home, key_file: Path) -> None:
    with lying_engine() as engine:
        words = ("--model", "honest", "--key-file", str(key_file), "--budget", "1s", "--deep")
        said = home.run("verify", "--url", engine.url, *words, code=4).stdout
    assert "the time was over before it could be asked to its end" in " ".join(said.split())
    assert "were not enough for all of it" in said


def test_json_holds_every_exchange_and_no_key(home: Home, key_file: Path) -> None:
    with lying_engine() as engine:
        words = ("--model", "honest", "--key-file", str(key_file), "--probe", "answers", "--json")
        text = home.run("verify", "--url", engine.url, *words).stdout
    view = json.loads(text)
    assert (view["verdict"], view["engine"], view["in_time"]) == ("pass", "vllm", True)
    [probe] = view["probes"]
    assert [check["name"] for check in probe["checks"]] == ["tokens", "named", "logprobs", "same twice"]
    assert json.loads(probe["checks"][0]["exchanges"][0]["body"])["model"] == "honest"
    assert KEY not in text


def test_reports_for_ci_and_for_people_tell_the_same(home: Home, key_file: Path, tmp_path: Path) -> None:
    junit, markdown = tmp_path / "report.xml", tmp_path / "report.md"
    with lying_engine("says-another-model", "refuses-tools") as engine:
        words = ("--model", "honest", "--key-file", str(key_file), "--probe", "answers", "--probe", "tools")
        home.run("verify", "--url", engine.url, *words, "--junit", str(junit), "--markdown", str(markdown), code=1)
    suites = ElementTree.parse(junit).getroot()  # noqa: S314 - our own file
    [failure] = suites.iter("failure")
    assert failure.attrib["message"].startswith("honest was asked and it says that another answered")
    assert failure.text is not None and failure.text.startswith("curl -sS -i -N ")
    assert [suite.attrib["failures"] for suite in suites] == ["1", "0"]
    assert len(list(suites.iter("testcase"))) == 12
    assert any("not offered: HTTP 400" in case.attrib["message"] for case in suites.iter("skipped"))
    text = markdown.read_text()
    assert "| answers | named | fail | honest was asked and it says that another answered |" in text
    assert "    curl -sS -i -N " in text
    assert KEY not in text + junit.read_text()


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--url", "http://127.0.0.1:9"), "--url and --model"),
        (("--model", "m"), "--url and --model"),
        (("demo", "--url", "http://127.0.0.1:9", "--model", "m"), "a service, or --url"),
        (("demo", "--key-file", "key.txt"), "a service, or --url"),
        (("--engine", "http://127.0.0.1:9"), "a service, or --url"),
        (("--url", "spark:8000", "--model", "m"), "is no address"),
        (("--url", "http://", "--model", "m"), "is no address"),
        (("--url", "http://spark:99999", "--model", "m"), "is no address"),
        (("--url", "http://me:secret@spark", "--model", "m"), "names a user or a password"),
        (("--url", "http://me:secret@spark:99999", "--model", "m"), "names a user or a password"),
        (("--url", "http://spark/?a=b", "--model", "m"), "holds more than a place"),
        (("--url", "http://127.0.0.1:9", "--model", "m", "--probe", "tolls"), "did you mean `tools`?"),
        (("--url", "http://127.0.0.1:9", "--model", "m", "--require", "x"), "no probe called"),
        (("--url", "http://127.0.0.1:9", "--model", "m", "--key-file", "/nowhere"), "cannot be read"),
        (("--url", "http://127.0.0.1:9", "--model", "m", "--key-file", "/etc/passwd"), "holds no key"),
    ],
)
def test_what_cannot_be_meant_is_wrong_use(home: Home, words: tuple[str, ...], part: str) -> None:
    assert part in home.run("verify", *words, code=2).stderr


def test_without_a_daemon_a_service_cannot_be_proved(home: Home) -> None:
    assert "--url asks any other address" in home.run("verify", code=3).stderr


def test_what_an_endpoint_says_does_not_drive_the_terminal_or_the_page(home: Home, key_file: Path, tmp_path: Path) -> None:
    page, junit = tmp_path / "report.md", tmp_path / "report.xml"
    name = "bad\x1b[2J|<script>"
    with lying_engine(model=name) as engine:
        words = ("--url", engine.url, "--model", "honest", "--key-file", str(key_file), "--probe", "answers")
        said = home.run("verify", *words, "--markdown", str(page), "--junit", str(junit), code=1).stdout
    assert "\x1b" not in said
    assert "<script>" not in page.read_text().partition("## ")[0]
    ElementTree.parse(junit)  # noqa: S314 - our own file


def test_the_gate_that_the_demo_passed_is_shown_without_asking(demo: Home) -> None:
    said = demo.run("verify", "--last", "demo", "-v").stdout
    assert "its gate asked for answers, identity, streaming, tools" in said.splitlines()[0]
    assert "llamacpp itself counted 18 generated tokens of 18" in said
    assert 'streamed it calls get_weather({"city": "Paris"}) too' in said
    assert said.splitlines()[-1].startswith("pass: 4 pass, in ")
    [gate] = [one for one in demo.json("timeline", "demo")["last"]["stages"] if one["name"] == "gate"]
    assert gate["took_s"] > 0


def test_what_a_person_found_out_about_a_service_is_kept_with_its_plan(home: Home, tmp_path: Path) -> None:
    home.add_liar("coder", "gate = []", "no-done")
    plan_id = home.json("up", "coder")["plan_id"]
    asked = home.run("verify", "coder", "--probe", "streaming", "--require", "tools", "--json", code=1)
    assert "not kept" not in asked.stderr
    home.run("down")
    kept = json.loads(home.run("verify", "--last", "--json", "--markdown", str(tmp_path / "report.md"), code=1).stdout)
    assert (kept["service"], kept["plan_id"], kept["engine"]) == ("coder", plan_id, "llamacpp")
    assert (kept["occasion"], kept["required"]) == ("verify", ["tools"])
    found, before = kept["verification"], json.loads(asked.stdout)
    assert [probe["verdict"] for probe in found["probes"]] == [probe["verdict"] for probe in before["probes"]]
    assert found["probes"][0]["checks"][0]["exchanges"] == before["probes"][0]["checks"][0]["exchanges"]
    assert "clients wait on" in (tmp_path / "report.md").read_text()
    assert "you asked" in home.run("verify", "--last", code=1).stdout.splitlines()[0]


def test_what_is_kept_goes_with_the_service(home: Home) -> None:
    home.add_liar("coder")
    home.run("up", "coder")
    home.run("up", "demo")
    home.run("down", "coder", "--forget")
    assert "kept are: demo" in home.run("verify", "--last", "coder", code=2).stderr


@pytest.mark.parametrize("words", [("--url", "http://a", "--model", "m"), ("--probe", "tools"), ("--deep",)])
def test_to_look_at_the_last_asks_nothing(home: Home, words: tuple[str, ...]) -> None:
    assert "--last asks nothing" in home.run("verify", "--last", *words, code=2).stderr


def test_another_services_verification_is_not_kept(demo: Home) -> None:
    kept = demo.json("verify", "--last", "demo")
    [told] = call(demo, "GET", "/api/services/demo/verifications")[1]
    assert told == kept
    status, answer = call(demo, "POST", "/api/services/demo/verifications", kept)
    assert (status, "no verification of demo that a person asked for" in answer["fault"]["what"]) == (400, True)
