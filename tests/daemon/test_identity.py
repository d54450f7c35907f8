"""Answers of which an engine's own counters know nothing: a real daemon, the real llama.cpp and one that counts less."""

from __future__ import annotations

import re
import urllib.request

from engine_metrics import read_counter
from home import Home, wait_for

HELLO = [{"role": "user", "content": "Who are you?"}]
OFTEN = "port = 0\nidentity_check_s = 0.1"
ROUNDS = 5


def count_substituted(home: Home) -> float:
    """What the gateway's own metric says."""
    request = urllib.request.Request(  # noqa: S310
        f"{home.daemon.url}/metrics", headers={"authorization": f"Bearer {home.daemon.key}"}
    )
    with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310
        found = re.search(rb"^stoker_gateway_substituted_answers_total (\S+)$", reply.read(), re.MULTILINE)
    assert found is not None
    return float(found[1])


def ask(home: Home, model: str, stream: bool = True) -> bytes:
    """Returns an answer that says how many tokens it is."""
    body = {"model": model, "messages": HELLO, "max_tokens": 8, "stream": stream}
    more = {"stream_options": {"include_usage": True}} if stream else {}
    answer = b"".join(home.daemon.stream("POST", "/v1/chat/completions", {**body, **more}))
    assert b'"completion_tokens":' in answer
    return answer


def errors(home: Home) -> list[str]:
    """The lines of the daemon's log that tell of it."""
    return [line for line in home.paths.daemon_log.read_text().splitlines() if "did not generate" in line]


def test_answers_that_their_engine_did_not_count_are_told_of_and_those_of_honest_engines_are_not(home: Home) -> None:
    home.configure(gateway=OFTEN)
    home.add_fake("honest", tokens=3, counts=3)
    home.add_fake("busy", tokens=3, counts=300)  # it has other clients
    home.add_fake("liar", tokens=3, counts=1)
    home.run("up", "demo")
    for name in ("honest", "busy", "liar"):
        home.run("up", name)

    def told() -> bool:
        """Asks all again: what was answered before the first look at the counters is known to nobody."""
        for stream in (True, False):
            ask(home, "stoker-demo", stream)
        for name in ("honest", "busy", "liar"):
            ask(home, name)
        return count_substituted(home) >= ROUNDS  # the liar comes last in each look, so the others were looked at as often

    wait_for("the liar to be found several times", told)
    found = errors(home)
    assert len(found) >= ROUNDS
    assert [line for line in found if "service=liar was asked for liar, and its answers said " not in line] == []
    assert read_counter(home, "demo", "tokens_predicted_total") > 0
