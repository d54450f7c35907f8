"""Canary prompts in a real daemon: asked when nobody asks, apart from all that users are counted by."""

from __future__ import annotations

import threading
from pathlib import Path

import httpx

from home import Home, wait_for
from stoker.records.watching import CanaryView

OFTEN = "[watch]\nevery_s = 1.0\ncanary_every_s = 1.0\ncanary_quiet_s = {quiet_s}\n{more}\n"


def canary(home: Home, name: str) -> CanaryView | None:
    """The last round of a service."""
    return next(one.canary for one in home.daemon.watch().services if one.name == name)


def said(home: Home, text: str) -> bool:
    """Tells whether the daemon's log has this."""
    return text in home.paths.daemon_log.read_text()


def test_a_real_engine_is_asked_and_nobody_is_charged_for_it(home: Home) -> None:
    home.configure(OFTEN.format(quiet_s=0.0, more=""))
    home.run("up")
    before = home.json("usage")["lines"]  # `up` shows an answer
    first = wait_for("a round", lambda: canary(home, "demo"))
    assert first.token_s is not None and first.ttft_s is not None
    wait_for("rounds enough", lambda: home.paths.daemon_log.read_text().count("service=demo canary ttft_s=") >= 4)
    now = home.daemon.watch()
    assert [one for one in now.alerts if one.id.startswith("canary")] == []
    assert "canary prompts of demo," in home.run("watch", "--once").stdout
    headers = {"authorization": f"Bearer {home.daemon.key}"}
    metrics = httpx.get(f"{home.daemon.url}/metrics", headers=headers, trust_env=False, timeout=20).text
    assert 'stoker_canary_output_token_seconds{service="demo"}' in metrics
    assert home.json("usage")["lines"] == before
    assert metrics.count('stoker_gateway_requests_total{path="/v1/chat/completions"') == len(before)
    home.run("down")
    rows = home.json("history", "demo", "--since", "2h")["rows"]
    assert sum(row["requests"] or 0 for row in rows) <= sum(line["requests"] for line in before)


def test_canary_prompts_give_way_to_whoever_asks(home: Home, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    home.configure(OFTEN.format(quiet_s=0.0, more=""))
    home.add_fake("slow", stream_gate=str(gate), tokens=4)
    home.run("up", "slow")
    wait_for("a round to begin", lambda: said(home, "service=slow canary prompts begin"))
    asked = threading.Thread(target=home.run, args=("ask", "--model", "slow", "Hello?"))
    asked.start()
    wait_for("it to give way", lambda: said(home, "service=slow canary prompts give way: somebody asks"))
    assert canary(home, "slow") is None
    gate.touch()
    asked.join()
    wait_for("a round once the answer is over", lambda: canary(home, "slow"))


def test_nothing_is_asked_unless_it_is_said_nor_so_soon_after_an_answer(home: Home) -> None:
    home.configure("[watch]\nevery_s = 1.0\n")
    home.add_fake("plain")
    home.run("up", "plain")
    wait_for("a look", lambda: home.daemon.watch().total_bytes)
    assert canary(home, "plain") is None
    home.run("down")
    home.configure(OFTEN.format(quiet_s=3600.0, more=""))
    home.add_fake("plain")
    home.run("up", "plain")
    home.run("ask", "--model", "plain", "Hello?")
    at = home.daemon.watch().at
    wait_for("looks", lambda: home.daemon.watch().at > at + 3)
    assert not said(home, "canary prompts begin")
