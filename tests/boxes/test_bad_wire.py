"""A box at the end of a wire that delays, loses, or lets nothing through: what the clients of a door see of it.

Frames are really late and really lost: each kernel's own TCP has to make up for it (see `test_lossy_wire.py`).
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from fake_engine import Script, write_fake_engine
from home import wait_for
from lossy_wire import BACK, OUT, WAYS, Wire
from many_streams import PATH, Clients, Told, at
from net_boxes import IN_NAMESPACES, OVER_WIRES, Box, Network, question
from stoker.config import demo_model
from stoker.gateway.trunk.trunk import DEAF_LIMIT_S

TOKENS, STREAMS = 200, 24
DELAY_S, JITTER_S, LOSS = 0.02, 0.01, 0.02
# What `docs/boxes.md` says: how long a box may say nothing, a connection may take, and a box that comes back is not seen.
SILENT_S, CONNECT_S, BACK_S = 1.5, 1.0, 2.0
BUFFER_BYTES = "4096 65536 262144"  # least, first, most
SLACK_S = 1.0  # a word that was on its way as the wire went deaf, and a machine of two cores
AWAY, END = b'"code":"box_away"', b"data: [DONE]\n\n"
AT_B = {"x-stoker-box": "b"}
REAL = '[service.real]\nmodel = "{model}"\n'
SERVICE = '[service.echo]\nmodel = "{model}"\nserver = "{program}"\nparallel = 64\ngate = []\n'

pytestmark = [IN_NAMESPACES, OVER_WIRES]


class Far(NamedTuple):
    """A door `a`, and two boxes that serve the same: `b` at the end of the wire, `c` on a good cable."""

    a: Box
    b: Box
    c: Box
    wire: Wire
    gate: Path  # of the engines: as long as it is not there, a stream waits after two tokens
    seen: Path  # by an engine of a request that is not streamed, which it never answers: "begun", then "left"


def bound_buffers(box: Box) -> None:
    """Has a box's kernel keep so little for a connection that a stream which is not read soon comes to a stand."""
    with box.inside():
        for name in ("tcp_rmem", "tcp_wmem"):
            Path(f"/proc/sys/net/ipv4/{name}").write_text(BUFFER_BYTES)


@pytest.fixture(scope="module")
def far_boxes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Far]:
    folder = tmp_path_factory.mktemp("n")
    net, gate, seen = Network(folder), folder / "gate", folder / "seen"
    program = write_fake_engine(
        folder / "engine", Script(tokens=TOKENS, echoes=True, stream_gate=str(gate), aborts=str(seen))
    )
    a, (b, wire), c = net.add("a"), net.add_far("b"), net.add("c")
    for box in (a, b):
        bound_buffers(box)
    for box in (b, c):
        box.configure((SERVICE + REAL).format(model=demo_model(), program=program))
        box.run("up", "echo")
        a.join(box)
    b.run("up", "real")
    wait_for("both to serve", lambda: a.serves(b, "echo") and a.serves(c, "echo"))
    yield Far(a, b, c, wire, gate, seen)
    assert net.end() == {}


@pytest.fixture
def far(far_boxes: Far) -> Iterator[Far]:
    """The boxes, whose wire is good again afterwards, and whose streams do not wait unless a test says so."""
    far_boxes.gate.touch()
    yield far_boxes
    far_boxes.wire.be()
    far_boxes.gate.touch()
    wait_for("b to be back", lambda: far_boxes.a.serves(far_boxes.b, "echo"), 20.0)


def names(count: int = STREAMS) -> list[str]:
    return [f"client-{number}:" for number in range(count)]


def direct(far: Far, saids: list[str]) -> list[bytes]:
    """Returns what box b's own door answers, without any wire."""
    told: list[bytes] = []

    async def ask(clients: Clients) -> None:
        told.extend([(await one).body for one in await clients.begin(saids)])

    at(far.b, ask)
    assert all(said.encode() in body and body.endswith(END) for said, body in zip(saids, told, strict=True))
    return told


def check_whole(told: Told, body: bytes) -> None:
    assert told.is_whole and told.body == body


def came_at(far: Far) -> float:
    """Returns since when the door has heard box b without a gap."""
    (seen,) = (one for one in far.a.boxes().boxes if one.name == "b")
    assert seen.is_here
    return seen.since


def in_flight(box: Box) -> int:
    with box.client() as client:
        lines = client.get("/metrics").text.splitlines()
    found = [line for line in lines if line.startswith("stoker_service_requests_in_flight{")]
    return int(sum(float(line.rpartition(" ")[2]) for line in found))


async def until(what: str, found: Callable[[], bool], limit_s: float) -> float:
    """Returns how long it took until something was so, while streams go on."""
    begun_s = time.monotonic()
    await asyncio.to_thread(wait_for, what, found, limit_s)
    return time.monotonic() - begun_s


def test_streams_over_delay_jitter_and_loss_are_each_whole_and_nobody_elses(far: Far) -> None:
    whole, since, before = direct(far, names()), came_at(far), far.wire.counts
    far.gate.unlink()

    async def story(clients: Clients) -> None:
        far.wire.be(DELAY_S, JITTER_S)
        streams = await clients.begin(names(), AT_B)
        far.wire.be(DELAY_S, JITTER_S, LOSS)  # only now: the loss of a connection's first frame costs more than it is given
        far.gate.touch()
        for stream, body in zip(streams, whole, strict=True):
            told = await stream
            check_whole(told, body)
            assert (told.box, told.headers.get("x-stoker-rerouted")) == ("b", None)

    at(far.a, story)
    after = far.wire.counts
    assert after[BACK].lost > before[BACK].lost  # the tokens' way
    assert came_at(far) == since, "it was taken for away"


def test_over_a_wire_that_always_loses_every_request_is_answered_whole_by_who_could_be_reached(far: Far) -> None:
    whole, since = direct(far, names()), came_at(far)
    far.wire.be(DELAY_S, JITTER_S, LOSS)

    async def story(clients: Clients) -> None:
        for _ in range(2):
            streams = [await one for one in await clients.begin(names())]
            for told, body in zip(streams, whole, strict=True):
                check_whole(told, body)
                rerouted = told.headers.get("x-stoker-rerouted", "")
                assert not rerouted or (told.box == "c" and rerouted.startswith("b cannot be reached")), rerouted
            assert {told.box for told in streams} == {"b", "c"}

    at(far.a, story)
    assert came_at(far) == since, "it was taken for away"


def test_a_real_engines_answer_comes_as_it_was_said(far: Far) -> None:
    wait_for("the door to know it", lambda: far.a.serves(far.b, "real"))
    with far.b.inside():
        model = far.b.service("real").model
    body = question(model, TOKENS, stream=True, ignore_eos=True, temperature=0)

    def said_at(box: Box) -> list[str]:
        with box.client() as client:
            client.post(PATH, json=question(model, 1))  # whose connection is used again
            far.wire.be(DELAY_S, JITTER_S, 2 * LOSS)
            with client.stream("POST", PATH, json=body) as reply:
                events = [line.removeprefix("data: ") for line in reply.iter_lines() if line]
        assert events.pop() == "[DONE]"
        found = [choice["delta"].get("content") or "" for event in events for choice in json.loads(event)["choices"]]
        assert len(found) > TOKENS / 2
        return found

    there = said_at(far.b)
    far.wire.be()
    assert said_at(far.a) == there


def test_one_that_reads_nothing_stops_its_own_engine_alone_and_has_all_of_it_later(far: Far) -> None:
    much = "x" * 16_000  # each token of 200: several times of what all buffers on the way hold
    (long,), whole = direct(far, [much]), direct(far, names())
    far.wire.be(DELAY_S, JITTER_S)

    async def story(clients: Clients) -> None:
        reads_on = asyncio.Event()
        (slow,) = await clients.begin([much], AT_B, reads_on)
        others = await clients.begin(names(), AT_B)
        far.wire.be(DELAY_S, JITTER_S, LOSS)
        for other, body in zip(others, whole, strict=True):
            check_whole(await other, body)
        await until("the others to be done there", lambda: in_flight(far.b) == 1, 5.0)
        assert not slow.done()
        far.wire.be(loss=LOSS)  # and no delay, so that the rest is not long in coming
        reads_on.set()
        check_whole(await slow, long)

    at(far.a, story)


def test_the_engine_is_told_of_one_that_leaves_and_the_others_go_on(far: Far) -> None:
    whole = direct(far, names())
    far.gate.unlink()
    far.seen.unlink(missing_ok=True)

    async def story(clients: Clients) -> None:
        far.wire.be(DELAY_S, JITTER_S)
        others = await clients.begin(names(), AT_B)
        (leaver,) = await clients.begin(["one that leaves"], AT_B)
        asker = asyncio.ensure_future(clients.client.post(PATH, json=question("echo"), headers=AT_B))
        await until("the engine to be asked", far.seen.exists, 5.0)
        assert await asyncio.to_thread(in_flight, far.b) == STREAMS + 2
        far.wire.be(DELAY_S, JITTER_S, LOSS)
        for one in (leaver, asker):
            one.cancel()
        await until("the engine to be told", lambda: far.seen.read_text() == "left\n", 3.0)
        await until("the stream to be gone", lambda: in_flight(far.b) == STREAMS, 3.0)
        far.gate.touch()
        for other, body in zip(others, whole, strict=True):
            check_whole(await other, body)

    at(far.a, story)


def key_of(far: Far, box: str) -> str:
    """Returns an affinity that is for a box."""
    body = question("echo", stream=True)
    with far.a.client() as client:
        return next(
            key for key in "abcdefghijklmnop"
            if client.post(PATH, json=body, headers={"x-stoker-affinity": key}).headers["x-stoker-box"] == box
        )  # fmt: skip


@pytest.mark.parametrize("ways", [WAYS, (OUT,), (BACK,)], ids=["both ways", "to the box", "from the box"])
def test_a_wire_that_goes_deaf_ends_its_boxs_streams_and_the_next_ones_go_elsewhere(far: Far, ways: tuple[str, ...]) -> None:
    whole, key = direct(far, names()), key_of(far, "b")
    far.gate.unlink()

    async def story(clients: Clients) -> None:
        there = await clients.begin(names(), AT_B)  # also takes what connections were kept
        here = await clients.begin(names(), {"x-stoker-box": "c"})
        far.wire.be(loss=1.0, ways=ways)
        deaf_s = time.monotonic()
        (rerouted,) = await clients.begin(["at once"], {"x-stoker-affinity": key})
        rerouted_s = time.monotonic() - deaf_s
        ended = [await one for one in there]
        ended_s = max(one.at_s for one in ended) - deaf_s
        begun_s = time.monotonic()
        (following,) = await clients.begin(["then"], {"x-stoker-affinity": key})
        following_s = time.monotonic() - begun_s
        far.wire.be()
        back_s = await until("b to be back", lambda: far.a.serves(far.b, "echo"), BACK_S + SLACK_S)
        freed_s = await until("the engine to be told", lambda: in_flight(far.b) == 0, 10.0)
        far.gate.touch()
        print(f"{ways}: {rerouted_s=:.3f} {ended_s=:.3f} {following_s=:.3f} {back_s=:.3f} {freed_s=:.3f}")
        for one in ended:
            assert not one.is_whole and AWAY in one.body and END not in one.body
        for stream, body in zip(here, whole, strict=True):
            check_whole(await stream, body)
        told, later = await rerouted, await following
        assert told.is_whole and told.box == "c" and told.headers["x-stoker-rerouted"].startswith("b cannot be reached")
        assert later.is_whole and later.box == "c" and "x-stoker-rerouted" not in later.headers
        assert rerouted_s < CONNECT_S + SLACK_S / 2
        assert ended_s < SILENT_S + SLACK_S
        assert following_s < 0.5

    at(far.a, story)


def test_a_box_does_not_work_on_for_a_door_that_has_gone_deaf(far: Far) -> None:
    far.gate.unlink()

    async def story(clients: Clients) -> None:
        there = await clients.begin(names(), AT_B)
        far.wire.be(loss=1.0)
        freed_s = await until("the engine to be told", lambda: in_flight(far.b) == 0, DEAF_LIMIT_S + 2 + SLACK_S)
        print(f"{freed_s=:.1f}")
        assert not any([(await one).is_whole for one in there])
        far.gate.touch()
        far.wire.be()
        await until("b to be back", lambda: far.a.serves(far.b, "echo"), BACK_S + SLACK_S)

    at(far.a, story)


def test_a_door_answers_by_the_box_again_once_it_is_back(far: Far) -> None:
    far.wire.be(loss=1.0)
    wait_for("b to be away", lambda: far.a.sees("b", is_here=False), SILENT_S + SLACK_S)
    far.wire.be()
    wait_for("b to be back", lambda: far.a.serves(far.b, "echo"), BACK_S + SLACK_S)
    whole = direct(far, names())

    async def story(clients: Clients) -> None:
        for stream, body in zip(await clients.begin(names(), AT_B), whole, strict=True):
            check_whole(await stream, body)

    at(far.a, story)
