"""Watching in a real daemon: who is told, what is kept, what is done, and what it survives."""

from __future__ import annotations

import http.server
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from home import Home, wait_for
from stoker.records import State
from stoker.records.watching import WatchedService

QUICK = "[watch]\nevery_s = 1.0\nnotice_limit_s = 5.0\n"
HELLO = [{"role": "user", "content": "Who are you?"}]


class Receiver(http.server.BaseHTTPRequestHandler):
    """Keeps what is posted to it."""

    posts: list[tuple[str, dict[str, str], bytes]]

    def do_POST(self) -> None:
        """Takes a post."""
        body = self.rfile.read(int(self.headers["content-length"]))
        self.posts.append((self.path, dict(self.headers.items()), body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *words: Any) -> None:
        """Stays quiet."""


@pytest.fixture
def receiver() -> Iterator[tuple[str, list[tuple[str, dict[str, str], bytes]]]]:
    """An address that takes posts, and what was posted."""
    posts: list[tuple[str, dict[str, str], bytes]] = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (Receiver,), {"posts": posts}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", posts
    server.shutdown()
    thread.join()
    server.server_close()


def lie(home: Home) -> None:
    """Has a service answer with more tokens than its engine counts, until that is noticed: an alert that fires at once."""
    home.add_fake("liar", tokens=3, counts=1)
    home.run("up", "liar")

    def noticed() -> bool:
        body = {"model": "liar", "messages": HELLO, "stream": True, "stream_options": {"include_usage": True}}
        b"".join(home.daemon.stream("POST", "/v1/chat/completions", body))
        return any(one.id == "substituted-answers" and one.state == "firing" for one in home.daemon.watch().alerts)

    wait_for("the alert", noticed)


def seen_services(home: Home) -> list[WatchedService] | None:
    """The services that were looked at twice, so that something grew between."""
    return [one for one in home.daemon.watch().services if one.tokens_per_s is not None] or None


def kill_engine(home: Home, name: str) -> None:
    """Kills the engine of a service and waits until the daemon noticed."""
    home.await_state(name, State.READY)
    pid, before = home.service(name).pid, home.service(name).restarts
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_for("a restart", lambda: home.service(name).restarts > before)


def test_an_alert_reaches_everybody_beside_one_who_hangs(
    home: Home, tmp_path: Path, receiver: tuple[str, list[tuple[str, dict[str, str], bytes]]]
) -> None:
    address, posts = receiver
    told = tmp_path / "told.json"
    # Written whole or not at all: a busy machine may need a second try.
    program = (
        f"import os, sys; new = {str(told)!r} + '.new'; open(new, 'w').write(sys.stdin.read()); os.rename(new, new[:-4])"
    )
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hanging = f"http://127.0.0.1:{silent.getsockname()[1]}/secret-of-mine"
        home.configure(
            f'{QUICK}webhooks = ["{hanging}", "{address}/hook"]\nntfy = "{address}/topic"\n'
            f"command = {json.dumps([sys.executable, '-c', program])}\n",
            gateway="port = 0\nidentity_check_s = 0.1",
        )
        lie(home)
        wait_for("both posts", lambda: len(posts) >= 2)
        wait_for("the command", told.exists)
        limit = "did not answer within 5 s (notice_limit_s)"
        wait_for("one to be given up", lambda: any(limit in line for line in home.daemon.watch().lost))
    by_path = {path: (headers, body) for path, headers, body in posts}
    alert = json.loads(by_path["/hook"][1])
    assert (alert["id"], alert["state"], alert["severity"]) == ("substituted-answers", "firing", "critical")
    assert json.loads(told.read_text()) == alert
    headers = {name.lower(): value for name, value in by_path["/topic"][0].items()}
    assert (headers["title"], headers["priority"]) == (alert["title"], "5")
    log = home.paths.daemon_log.read_text()
    assert "alert=substituted-answers" in log
    assert "secret-of-mine" not in log
    said = home.run("alerts", code=1).stdout
    assert "substituted-answers" in said
    assert "Next: The daemon's log names service and model" in said


def test_what_is_silenced_is_told_to_nobody_and_shown_all_the_same(
    home: Home, receiver: tuple[str, list[tuple[str, dict[str, str], bytes]]]
) -> None:
    address, posts = receiver
    home.configure(f'{QUICK}webhooks = ["{address}/hook"]\n', gateway="port = 0\nidentity_check_s = 0.1")
    home.add_fake("other", tokens=3)
    home.run("up", "other")
    assert "is not told of for 2 h" in home.run("alerts", "silence", "substituted-answers", "--for", "2h").stdout
    home.run("down", "other")
    home.run("down", "other", "--forget")
    lie(home)
    assert home.json("alerts")["alerts"][0]["silenced_until"] is not None  # exit code 0: nobody is to be bothered
    assert posts == []
    home.kill_daemon()
    home.run("up", "liar")
    after = home.daemon.watch()
    assert [one.id for one in after.silences] == ["substituted-answers"]
    assert home.run("alerts", "silence", "no-such-alert", code=2).stderr


@pytest.mark.parametrize(("dry", "state"), [(False, State.STOPPED), (True, State.READY)])
def test_an_act_is_done_once_it_is_asked_for_and_kept_with_its_reason(home: Home, dry: bool, state: State) -> None:
    more = f'{QUICK}dry_run = {str(dry).lower()}\n[watch.act]\nservice-restarted = "stop"\n'
    home.configure(more, limits="restart_window_s = 3600")
    home.add_fake("brief")
    home.run("up", "brief")
    for _ in range(2):
        kill_engine(home, "brief")
    acts = wait_for("the act", lambda: json.loads(home.run("alerts", "--json", code=None).stdout)["acts"] or None)
    assert [(one["alert"], one["about"], one["act"], one["dry_run"]) for one in acts] == [
        ("service-restarted", "brief", "stop", dry)
    ]
    assert acts[0]["why"] == "it was restarted 2 times"
    assert acts[0]["outcome"] == ("nothing, since dry_run is set; else it is stopped" if dry else "it is stopped")
    home.await_state("brief", state)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[watch.act]\nno-such-alert = "stop"\n', "there is no alert `no-such-alert`"),
        ('[watch.act]\nmemory-floor = "stop"\n', "nothing can be done about `memory-floor` by itself"),
        ('[watch.act]\nerrors = "explode"\n', "watch.act"),
        ('[watch]\nwebhooks = ["file:///etc/passwd"]\n', "watch.webhooks"),
    ],
)
def test_a_table_that_cannot_be_meant_is_refused(home: Home, text: str, says: str) -> None:
    home.configure(text)
    said = home.run("serve", code=2).stderr
    assert says in said


def test_the_past_of_a_real_engine_is_told_without_a_daemon(home: Home) -> None:
    home.configure(QUICK)
    home.run("up")
    seen = wait_for("two looks", lambda: seen_services(home))

    def asked_and_seen() -> bool:
        home.run("ask", "Who are you?", "--max-tokens", "32")
        return any(one.tokens_per_s for one in home.daemon.watch().services)

    wait_for("a look after an answer", asked_and_seen)
    assert (seen[0].name, seen[0].state, seen[0].lost) == ("demo", "READY", "")
    assert "accept rate" in home.run("watch", "--once").stdout
    home.run("down")
    view = home.json("history", "demo", "--since", "2h")
    assert view["step_s"] == 60
    assert any(row["tokens_per_s"] for row in view["rows"])
    assert sum(row["requests"] or 0 for row in view["rows"]) >= 1
    assert "nothing is kept" in home.run("history", "nobody", code=2).stderr
    assert "no daemon runs" in home.run("watch", "--once", code=4).stderr


@pytest.mark.parametrize(
    ("page", "lost"),
    [
        ("x" * 10 * 1024**2, "too large"),
        ("llamacpp:tokens_predicted_total NaN\nllamacpp:requests_processing -inf\n", "unknown names"),
        ("<html>it works</html>", "unknown names"),
    ],
)
def test_metrics_that_cannot_be_used_are_said_and_watching_goes_on(home: Home, tmp_path: Path, page: str, lost: str) -> None:
    file = tmp_path / "page"
    file.write_text("llamacpp:tokens_predicted_total 1\n")
    home.configure(QUICK)
    home.add_fake("odd", metrics=str(file))
    home.run("up", "odd")
    wait_for("two looks", lambda: seen_services(home))
    file.write_text(page)
    wait_for("it to be said", lambda: any(one.lost == lost for one in home.daemon.watch().services))
    assert any(one.id == "engine-metrics-vanished" for one in home.daemon.watch().alerts)
    file.write_text("llamacpp:tokens_predicted_total 2\n")
    wait_for("it to be over", lambda: all(not one.lost for one in home.daemon.watch().services))
    assert "a look failed" not in home.paths.daemon_log.read_text()


PAGE = "llamacpp:tokens_predicted_total {}\nllamacpp:prompt_tokens_total {}\n"
DRAFTS = "llamacpp:spec_decode_num_draft_tokens_total {}\nllamacpp:spec_decode_num_accepted_tokens_total {}\n"


@pytest.mark.parametrize(
    ("page", "odd"),
    [
        (PAGE.format(3, 7), "went back"),
        (PAGE.format(12, "NaN"), "not a number, vanished"),
        (PAGE.format(12, 9).replace("prompt_tokens", "tokens_prompted"), "vanished"),
        (PAGE.format(12, 9) + DRAFTS.format(5, 6), "impossible"),
    ],
    ids=["reset", "NaN", "renamed", "lies"],
)
def test_metrics_that_cannot_be_are_an_alert_that_stays_and_the_rest_is_watched(
    home: Home, tmp_path: Path, page: str, odd: str
) -> None:
    file = tmp_path / "page"
    file.write_text(PAGE.format(10, 8))
    home.configure(QUICK)
    home.add_fake("odd", metrics=str(file))
    home.run("up", "odd")
    wait_for("two looks", lambda: seen_services(home))
    file.write_text(page)

    def lasting() -> bool:
        said = home.daemon.watch()
        return any((one.id, one.why) == ("engine-metrics-odd", odd) and said.at - one.since > 3 for one in said.alerts)

    wait_for("three looks that say it", lasting)
    (seen,) = home.daemon.watch().services
    assert seen.lost == "" and seen.state == "READY"
