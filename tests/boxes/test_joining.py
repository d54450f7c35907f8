"""Joining: who is let in by a code, who is not, and what a person is told."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from home import wait_for
from net_boxes import IN_NAMESPACES, Box, Network, Trio
from stoker.errors import StokerError
from stoker.flows.boxes.linked import find_linked

pytestmark = IN_NAMESPACES


def add(box: Box, name: str, url: str, code: str) -> subprocess.CompletedProcess[str]:
    """Runs `boxes add` with the code on standard input, and fails where it is shown anywhere."""
    words = [*box.prefix, sys.executable, "-m", "stoker", "boxes", "add", name, url]
    done = subprocess.run(words, env=box.environment, input=code, capture_output=True, text=True, timeout=60)
    assert code not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def test_wrong_used_and_foreign_codes_are_refused_with_what_to_do(network: Network) -> None:
    a, b, c = map(network.add, "abc")
    code = b.json("boxes", "code")["code"]
    wrong = code[:-4] + ("AAAA" if code[-4:] != "AAAA" else "BBBB")
    done = add(a, "b", b.url, wrong)
    assert (done.returncode, "the join code is wrong" in done.stderr) == (3, True), done.stderr
    foreign = c.json("boxes", "code")["code"]
    done = add(a, "b", b.url, foreign)
    assert (done.returncode, "is not the one that was meant" in done.stderr) == (3, True), done.stderr
    assert "nothing was told to it" in done.stderr
    assert add(a, "b", b.url, code).returncode == 0
    done = add(c, "b", b.url, code)
    assert (done.returncode, "was used already" in done.stderr) == (3, True), done.stderr
    done = add(a, "b", b.url, code)
    assert (done.returncode, "there is a box called `b` already" in done.stderr) == (3, True)
    done = add(a, "x", "https://10.77.0.99:8701", code)
    assert (done.returncode, "did not answer" in done.stderr) == (1, True)


def test_a_box_without_an_address_for_doors_gives_no_code(network: Network) -> None:
    box = network.add("a")
    box.paths.config.write_text("[gateway]\nport = 0\n")
    done = box.run("boxes", "code", code=3)
    assert "[boxes] host is not set" in done.stderr


def test_a_removed_link_opens_nothing_any_more_and_the_other_side_says_so(network: Network) -> None:
    a, b = map(network.add, "ab")
    a.join(b)
    b.run("boxes", "remove", "a")
    wait_for("the door to be told", lambda: "it knows no link of this door any more" in a.boxes().boxes[0].why, 5.0)
    with a.inside(), pytest.raises(StokerError, match="knows no link"):
        find_linked(a.paths, "b").status()
    a.run("boxes", "remove", "b")
    assert json.loads(a.paths.links_file.read_text())["boxes"] == []
    assert "no box called `b`" in a.run("boxes", "remove", "b", code=2).stderr


def test_a_changed_certificate_is_refused_and_told_nothing(trio: Trio) -> None:
    kept = trio.c.paths.box_identity.read_bytes()
    trio.c.kill_daemon()
    trio.c.paths.box_identity.unlink()
    trio.c.run("boxes", "list")  # begins a daemon, which makes another certificate
    wait_for("the door to see it", lambda: "certificate" in trio.a.boxes().boxes[1].why, 10.0)
    reply = trio.a.chat(headers={"x-stoker-box": "c"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "box_away")
    assert "its certificate is not the one that it had when it was joined" in reply.json()["error"]["message"]
    assert trio.a.chat().headers["x-stoker-box"] == "b"
    assert "certificate" in trio.a.run("status", "--on", "c", code=1).stderr
    trio.c.kill_daemon()
    trio.c.paths.box_identity.write_bytes(kept)
    trio.c.run("boxes", "list")
    wait_for("the door to see it", lambda: trio.a.serves(trio.c), 20.0)
