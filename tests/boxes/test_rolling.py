"""A model's replicas changed one after another, while clients ask all the time."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest

from home import wait_for
from net_boxes import IN_NAMESPACES, Box, Network
from stoker.config import demo_model

pytestmark = IN_NAMESPACES
SERVICE = '[service.small]\nmodel = "{model}"\ncontext = {context}\nreasoning = "off"\ngate = []\n'


def write(box: Box, context: int, more: str = "") -> None:
    box.configure(SERVICE.format(model=demo_model(), context=context) + more)


class Asking:
    """A client that asks again and again, in a thread, and keeps what it was answered."""

    def __init__(self, door: Box) -> None:
        self.codes: list[int] = []
        self.boxes: set[str] = set()
        self._ends = threading.Event()
        self._door = door
        self._thread = threading.Thread(target=self._ask)

    def _ask(self) -> None:
        while not self._ends.is_set():
            reply = self._door.chat("small", 16)
            self.codes.append(reply.status_code)
            self.boxes.add(reply.headers.get("x-stoker-box", ""))

    def __enter__(self) -> Asking:
        self._thread.start()
        wait_for("an answer", lambda: self.codes)
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()


@pytest.fixture
def three(network: Network) -> Iterator[tuple[Box, Box, Box]]:
    """A door, and two boxes that serve the same by the same plan."""
    a, b, c = map(network.add, "abc")
    for box in (b, c):
        write(box, 1024)
        box.run("up", "small")
        a.join(box, "--act")
    wait_for("both to serve", lambda: a.serves(b, "small") and a.serves(c, "small"))
    yield a, b, c


def test_no_request_is_lost_while_one_replica_after_another_changes(three: tuple[Box, Box, Box]) -> None:
    a, b, c = three
    for box in (b, c):
        write(box, 2048)
    with Asking(a) as asking:
        told = json.loads(a.run("roll", "small", "--json").stdout)
    assert [(one["box"], one["outcome"]) for one in told] == [("b", "changed"), ("c", "changed")]
    assert set(asking.codes) == {200} and asking.boxes == {"b", "c"}
    assert told[0]["after"] == told[1]["after"] != told[0]["before"]
    again = a.run("roll", "small").stdout
    assert again.count("unchanged") == 2


def test_the_first_that_does_not_come_up_ends_it_and_all_go_on_by_their_old_plans(three: tuple[Box, Box, Box]) -> None:
    a, b, c = three
    write(b, 2048, "flags = { no-such-flag = true }\n")
    write(c, 2048)
    with Asking(a) as asking:
        done = a.run("roll", "small", code=1)
    assert "small on b did not take its new plan (changed: none; left as they were: small on c)" in done.stderr
    assert set(asking.codes) == {200}
    wait_for("both to serve again", lambda: a.serves(b, "small") and a.serves(c, "small"), 10.0)


def test_the_only_replica_is_not_changed_unless_a_gap_is_allowed(three: tuple[Box, Box, Box]) -> None:
    a, b, c = three
    write(b, 4096)
    assert "small on b: changed" in a.run("roll", "small", "--on", "b").stdout  # c answers meanwhile
    c.run("down", "small")
    wait_for("it to be known", lambda: not a.serves(c, "small"))
    write(b, 2048)
    assert "is the only replica of small that is READY" in a.run("roll", "small", "--on", "b", code=3).stderr
    assert "changed" in a.run("roll", "small", "--on", "b", "--allow-gap").stdout
    assert not a.serves(c, "small")  # what somebody stopped stays so
    assert "no replica on `c` is READY" in a.run("roll", "small", "--on", "c", code=2).stderr
    assert "no box serves `nobody`" in a.run("roll", "nobody", code=2).stderr
