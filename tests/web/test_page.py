"""The dashboard over real HTTP: what is served to everybody, and what a session opens and does not."""

from __future__ import annotations

import gzip
import http.client
import json
from urllib.parse import urlsplit

import pytest

from home import Home
from page_client import Browser, send
from stoker.web.page_files import page_files

LIMIT_BYTES = 150_000


@pytest.fixture(scope="module")
def page(demo: Home) -> Browser:
    """A browser that is logged in."""
    return Browser(demo)


# What everybody gets.


def test_the_page_lets_nothing_in_and_nothing_out(demo: Home) -> None:
    answer = send(demo, "GET", "/")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = dict(one.split(" ", 1) for one in answer.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"


def test_nothing_in_its_files_is_secret_inline_or_from_elsewhere(demo: Home) -> None:
    secrets = [
        file.read_text().strip() for file in (demo.paths.key_file, demo.paths.control_key_file, demo.paths.engine_key_file)
    ]
    for name in page_files():
        text = send(demo, "GET", f"/page/{name}").body.decode()
        assert not [one for one in secrets if one in text]
        if not name.startswith("uPlot"):
            assert "innerHTML" not in text
            assert "://" not in text.replace("http://www.w3.org/2000/svg", "")
            assert " style=" not in text
            assert "<script>" not in text


def test_all_of_it_is_small(demo: Home) -> None:
    assert sum(file.stat().st_size for file in page_files().values()) < LIMIT_BYTES
    plain, packed = (send(demo, "GET", "/page/main.js", accept_encoding=one) for one in ("identity", "gzip"))
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body


def test_what_did_not_change_is_not_sent_again(demo: Home) -> None:
    tag = send(demo, "GET", "/page/style.css").headers["etag"]
    answer = send(demo, "GET", "/page/style.css", if_none_match=tag)
    assert (answer.status, answer.body) == (304, b"")


@pytest.mark.parametrize(
    "path", ["/page/nothing.js", "/page/../api.py", "/page/..%2Fapi.py", "/page/page_files.py", "/page/", "/page"]
)
def test_nothing_else_is_served(demo: Home, path: str) -> None:
    assert send(demo, "GET", path).status in (401, 404)


def test_the_page_is_read_and_not_written_to(demo: Home) -> None:
    answer = send(demo, "POST", "/")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
    assert send(demo, "HEAD", "/").body == b""


def test_a_page_under_a_foreign_name_is_refused(demo: Home) -> None:
    for path in ("/", "/page/main.js", "/page/session"):
        answer = send(demo, "GET", path, host="evil.example:8700")
        assert (answer.status, answer.code) == (403, "foreign_host")


# Logging in and out.


@pytest.mark.parametrize("key", ["", "sk-wrong", "gateway"])
def test_only_the_control_key_logs_in(demo: Home, key: str) -> None:
    shown = demo.daemon.key if key == "gateway" else key
    answer = send(demo, "POST", "/page/session", **({"authorization": f"Bearer {shown}"} if shown else {}))
    assert answer.status == 401
    assert "set-cookie" not in answer.headers


def test_a_login_that_another_page_sends_is_refused(demo: Home, page: Browser) -> None:
    key = demo.paths.control_key_file.read_text().strip()
    port = (urlsplit(demo.daemon.url).port or 0) + 1
    for other in ({"origin": f"http://127.0.0.1:{port}"}, {"sec_fetch_site": "same-site"}):
        answer = send(demo, "POST", "/page/session", authorization=f"Bearer {key}", **other)
        assert (answer.status, answer.code) == (403, "foreign_origin")


def test_wrong_keys_have_to_wait(home: Home) -> None:
    home.run("up")
    seen = [send(home, "POST", "/page/session", authorization=f"Bearer sk-{at}").status for at in range(25)]
    assert seen[:20] == [401] * 20
    assert seen[-1] == 429
    assert Browser(home).told.status == 200  # the right one never waits on this machine


def test_a_session_is_told_of_without_its_secrets(demo: Home, page: Browser) -> None:
    assert send(demo, "GET", "/page/session").json() == {
        "logged_in": False,
        "looks_on": False,
        "expires": None,
        "word": None,
    }
    told = page.send("GET", "/page/session").json()
    assert (told["logged_in"], told["looks_on"], told["word"]) == (True, False, None)
    kept = demo.paths.sessions_file
    assert kept.stat().st_mode & 0o777 == 0o600
    assert page.word not in kept.read_text()
    assert page.cookie.partition("=")[2] not in kept.read_text()


def test_logging_out_ends_the_session_where_the_page_asks_for_it(demo: Home) -> None:
    browser = Browser(demo)
    assert browser.send("DELETE", "/page/session", origin="http://127.0.0.1:1").status == 403
    assert browser.send("GET", "/api/status").status == 200
    assert "Max-Age=0" in browser.send("DELETE", "/page/session").headers["set-cookie"]
    answer = browser.send("GET", "/api/status")
    assert (answer.status, answer.code) == (401, "session_over")


# What a session opens.


def test_it_opens_the_control_api(page: Browser) -> None:
    answer = page.send("GET", "/api/dashboard")
    assert answer.status == 200
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.json()["services"][0]["name"] == "demo"


@pytest.mark.parametrize(
    "wrong", [{"origin": ""}, {"origin": "http://localhost:3000"}, {"x_stoker_word": ""}, {"sec_fetch_site": "cross-site"}]
)
def test_nothing_is_changed_for_another_page(page: Browser, wrong: dict[str, str]) -> None:
    assert page.send("POST", "/api/services/demo/down", **wrong).status == 403
    assert page.send("GET", "/api/status").json()["services"][0]["state"] == "READY"


def test_it_opens_the_chat_and_no_page_of_an_engine(page: Browser) -> None:
    chat = {"model": "stoker-demo", "messages": [{"role": "user", "content": "Who are you?"}], "max_tokens": 4}
    assert page.send("POST", "/v1/chat/completions", chat).status == 200
    assert page.send("POST", "/v1/chat/completions", chat, x_stoker_word="").status == 403
    for path in ("/service/demo/", "/v1/models", "/upstream/stoker-demo/", "/metrics", "/mcp"):
        assert page.send("GET", path).status == 401


def test_one_that_looks_on_sees_everything_and_changes_nothing(demo: Home) -> None:
    browser = Browser(demo, looks_on=True)
    assert browser.told.json()["looks_on"]
    assert browser.send("GET", "/api/dashboard").status == 200
    chat = {"model": "stoker-demo", "messages": []}
    for path, body in (("/api/services/demo/down", None), ("/api/stop", None), ("/v1/chat/completions", chat)):
        answer = browser.send("POST", path, body)
        assert (answer.status, answer.code) == (403, "read_only")


def test_a_daemon_that_only_shows_lets_nobody_change_anything_by_the_page(home: Home) -> None:
    home.configure(gateway='port = 0\ndashboard = "read-only"')
    home.run("up")
    browser = Browser(home)
    assert browser.send("POST", "/api/services/demo/down").code == "read_only"
    home.run("down", "demo")  # the command line is not meant


def test_a_daemon_without_a_dashboard_has_no_page(home: Home) -> None:
    home.configure(gateway='port = 0\ndashboard = "off"')
    home.run("up")
    assert {send(home, "GET", path).status for path in ("/", "/page/main.js", "/page/session")} == {401}


# What it is told.


def test_events_begin_with_everything_and_go_on(demo: Home, page: Browser) -> None:
    connection = http.client.HTTPConnection(demo.daemon.url.removeprefix("http://"), timeout=60)
    connection.request("GET", "/api/events", headers={"cookie": page.cookie})
    reply = connection.getresponse()
    assert (reply.status, reply.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    lines = (reply.readline().decode() for _ in range(10**6))
    told = (json.loads(line[6:]) for line in lines if line.startswith("data: {"))
    first, second = next(told), next(told)
    assert (first["whole"], first["pieces"]["service/demo"]["state"]) == (True, "READY")
    assert (second["whole"], set(second["names"])) == (False, set(first["names"]))
    connection.close()


def test_the_machine_is_shown_whole(page: Browser) -> None:
    machine = page.send("GET", "/api/dashboard").json()["machine"]
    assert sum(part["bytes"] for part in machine["parts"]) == machine["total_bytes"]
    assert {"demo"} == {part["service"] for part in machine["parts"] if part["kind"] == "service"}


def test_a_plan_is_shown_with_its_reasons(page: Browser) -> None:
    plan = page.send("GET", "/api/services/demo/plan").json()
    assert all(one["because"] for one in plan["settings"])


def test_timeline_findings_history_and_machine_are_there(page: Browser) -> None:
    assert page.send("GET", "/api/services/demo/timeline").json()["last"]["is_ready"]
    assert page.send("GET", "/api/services/demo/diagnosis").json()["findings"] == []
    assert page.send("GET", "/api/history?service=demo").json()["service"] == "demo"
    assert page.send("GET", "/api/machine").json()["cpu_count"] >= 1
    assert page.send("GET", "/api/history?service=../x").status == 400
    assert page.send("GET", "/api/services/nobody/plan").status == 400
