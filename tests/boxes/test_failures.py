"""What clients get when an engine, a daemon, a cable or a whole box goes in the middle of their streams."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from home import wait_for
from net_boxes import IN_NAMESPACES, Box, Trio, question

LONG = 3000  # ten seconds of the demo model on two cores
NEXT_S, SEEN_S = 1.0, 2.0
ERROR = '"error"'

pytestmark = IN_NAMESPACES


def kill_engine(trio: Trio, box: Box) -> None:
    for pid in box.engines():
        os.kill(pid, signal.SIGKILL)


def kill_daemon(trio: Trio, box: Box) -> None:
    box.kill_daemon()


def pull_cable(trio: Trio, box: Box) -> None:
    trio.net.cable(box, "down")


@pytest.fixture(autouse=True)
def put_right(trio: Trio) -> Iterator[None]:
    """Whatever was broken is whole again for the next test."""
    yield
    for box in (trio.b, trio.c):
        trio.net.cable(box, "up")
        box.run("up")
    wait_for("both to be seen", lambda: trio.a.serves(trio.b) and trio.a.serves(trio.c), 20.0)


def read_rest(lines: Iterator[str]) -> list[str]:
    """Returns what still comes of a stream, which must not end as if it were whole."""
    left: list[str] = []
    with pytest.raises(httpx.RemoteProtocolError):
        left.extend(lines)
    return left


@pytest.mark.parametrize("break_it", [kill_engine, kill_daemon, pull_cable])
def test_a_stream_of_a_dying_box_ends_with_an_error_and_the_next_request_goes_on(
    trio: Trio, break_it: Callable[[Trio, Box], None]
) -> None:
    body = question(max_tokens=LONG, stream=True, ignore_eos=True)
    with trio.a.client() as client:
        with client.stream("POST", "/v1/chat/completions", json=body) as stream:
            box = {"b": trio.b, "c": trio.c}[stream.headers["x-stoker-box"]]
            lines = stream.iter_lines()
            assert next(lines).startswith("data: {")
            break_it(trio, box)
            broken = time.monotonic()
            left = read_rest(lines)
        assert ERROR in [line for line in left if line][-1]
        assert time.monotonic() - broken < SEEN_S + 0.5
        begun = time.monotonic()
        reply = client.post("/v1/chat/completions", json=question())
        assert time.monotonic() - begun < NEXT_S
    assert reply.status_code == 200, (box.name, reply.headers, reply.text)
    assert reply.headers["x-stoker-box"] != box.name


def test_the_streams_of_other_boxes_go_on_while_one_dies(trio: Trio) -> None:
    body = question(max_tokens=600, stream=True, ignore_eos=True)
    where = {"x-stoker-box": "c"}
    with trio.a.client() as client, client.stream("POST", "/v1/chat/completions", json=body, headers=where) as other:
        trio.b.kill_daemon()
        lines = [line for line in other.iter_lines() if line]
    assert lines[-1] == "data: [DONE]"
    assert not any(ERROR in line for line in lines)


def test_a_box_away_is_said_to_be_so_since_when_and_comes_back_soon(trio: Trio) -> None:
    for box in (trio.b, trio.c):
        trio.net.cable(box, "down")
    wait_for("both to be away", lambda: trio.a.sees("b", False) and trio.a.sees("c", False), SEEN_S + 0.5)
    reply = trio.a.chat()
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "box_away")
    assert "away since " in reply.json()["error"]["message"]
    assert reply.headers["retry-after"] == "5"
    with trio.a.client() as client:
        (model,) = client.get("/v1/models").json()["data"]
    assert (model["state"], {one["state"] for one in model["replicas"]}) == ("AWAY", {"AWAY"})
    for box in (trio.b, trio.c):
        trio.net.cable(box, "up")
    wait_for("both to be back", lambda: trio.a.serves(trio.b) and trio.a.serves(trio.c), SEEN_S + 1.5)
    assert trio.a.chat().status_code == 200


def test_a_box_that_goes_and_comes_back_is_seen_in_metrics_and_states(trio: Trio) -> None:
    def metrics() -> list[str]:
        with trio.a.client() as client:
            return [line for line in client.get("/metrics").text.splitlines() if line.startswith("stoker_box_")]

    def known(name: str) -> set[str]:
        return {line.partition("{")[0] for line in metrics() if f'box="{name}"' in line}

    memory = {"stoker_box_memory_total_bytes", "stoker_box_memory_available_bytes"}
    wait_for("b to have looked at its memory", lambda: memory <= known("b"), 20.0)
    said = trio.a.run("status").stdout
    assert re.search(r"box b  here for .*; demo READY; [0-9.]+ GiB of [0-9.]+ GiB available", said), said
    trio.net.cable(trio.b, "down")
    wait_for("b to be away", lambda: 'stoker_box_up{box="b"} 0.0' in metrics(), SEEN_S + 0.5)
    assert not memory & known("b")  # what is not heard is unknown, and not as it was
    assert memory <= known("c")
    assert 'stoker_box_service_ready{box="b",service="demo"} 0.0' in metrics()
    assert re.search(r"box b  away for .*: nothing was heard of it for 1.5 s", trio.a.run("watch", "--once").stdout)
    trio.net.cable(trio.b, "up")
    wait_for("b to be back", lambda: 'stoker_box_up{box="b"} 1.0' in metrics() and memory <= known("b"), SEEN_S + 1.5)
    assert 'stoker_box_service_ready{box="b",service="demo"} 1.0' in metrics()


def test_a_door_that_begins_while_a_box_is_away_still_knows_its_models(trio: Trio) -> None:
    wait_for(
        "what is served to be kept", lambda: trio.a.paths.box_seen("b").exists() and trio.a.paths.box_seen("c").exists()
    )
    for box in (trio.b, trio.c):
        trio.net.cable(box, "down")
    trio.a.kill_daemon()
    trio.a.run("boxes", "list")
    reply = trio.a.chat()
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "box_away")


def test_a_request_that_was_not_sent_goes_to_another_replica_and_says_so(trio: Trio) -> None:
    def box(key: str) -> str:
        return str(trio.a.chat(max_tokens=1, headers={"x-stoker-affinity": key}).headers["x-stoker-box"])

    key = next(key for key in "abcdefghijklmnop" if box(key) == "b")
    trio.a.kill_daemon()  # the next one has no connection that is kept
    trio.a.run("boxes", "list")
    wait_for("both to be seen", lambda: trio.a.serves(trio.b) and trio.a.serves(trio.c))
    trio.net.cable(trio.b, "down")
    reply = trio.a.chat(headers={"x-stoker-affinity": key})
    assert (reply.status_code, reply.headers["x-stoker-box"]) == (200, "c")
    assert reply.headers["x-stoker-rerouted"].startswith("b cannot be reached")
    assert len(reply.headers.get_list("x-stoker-box")) == 1
