"""The wire of the tests itself: what it is told to do to frames, the kernels' own TCP sees."""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pytest

from lossy_wire import BACK, OUT, Faults, Schedule, Wire
from net_boxes import IN_NAMESPACES, OVER_WIRES, Box, Network

DELAY_S, SLACK_S = 0.02, 0.02  # a busy machine may be late, and a wire never early
RTT_AT = 68  # tcpi_rtt in the kernel's struct tcp_info
MUCH = random.Random(4711).randbytes(2_000_000)


pytestmark = [IN_NAMESPACES, OVER_WIRES]


class Ends(NamedTuple):
    """Two networks and the wire between them; no daemon runs in either."""

    near: Box
    far: Box
    wire: Wire


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ends]:
    net = Network(tmp_path_factory.mktemp("n"))
    near, (far, wire) = net.add("a"), net.add_far("b")
    yield Ends(near, far, wire)
    assert net.end() == {}


@pytest.fixture
def ends(pair: Ends) -> Iterator[Ends]:
    """The two, whose wire is good again afterwards."""
    yield pair
    pair.wire.be()


def test_a_seed_decides_the_fate_of_each_frame_and_loss_is_as_frequent_as_it_is_said_to_be() -> None:
    def fates(seed: str) -> list[float | None]:
        schedule = Schedule(seed)
        schedule.faults = Faults(0.02, 0.01, 0.02)
        return [schedule.next_delay_s() for _ in range(10_000)]

    one = fates("1")
    assert fates("1") == one != fates("2")
    assert 150 < one.count(None) < 250
    assert all(0.01 <= delay_s <= 0.03 for delay_s in one if delay_s is not None)


def connect_s(ends: Ends) -> float:
    """Returns how long TCP takes to shake hands: one way there and one back."""
    with ends.far.inside(), socket.create_server((ends.far.address, 0)) as server, ends.near.inside():
        begun = time.monotonic()
        with socket.create_connection(server.getsockname()[:2]):
            return time.monotonic() - begun


def test_a_handshake_takes_both_ways_delays_longer_and_no_more_when_it_is_good_again(ends: Ends) -> None:
    connect_s(ends)  # each learns the other's address
    before_s = median(connect_s(ends) for _ in range(5))
    ends.wire.be(DELAY_S)
    during_s = [connect_s(ends) for _ in range(5)]
    ends.wire.be(DELAY_S, ways=[BACK])
    one_way_s = [connect_s(ends) for _ in range(5)]
    ends.wire.be()
    after_s = median(connect_s(ends) for _ in range(5))
    assert min(during_s) >= 2 * DELAY_S and min(one_way_s) >= DELAY_S
    assert median(during_s) < before_s + 2 * DELAY_S + SLACK_S
    assert max(before_s, after_s, median(one_way_s) - DELAY_S) < SLACK_S


def resent(box: Box) -> int:
    """Returns how many segments a box's kernel has sent again."""
    with box.inside():
        names, values = (
            line.split() for line in Path("/proc/thread-self/net/snmp").read_text().splitlines() if line.startswith("Tcp:")
        )
    return int(values[names.index("RetransSegs")])


def send_much(ends: Ends) -> bytes:
    """Sends two megabytes to the far end, and returns what it says that it got."""

    def answer(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            digest = sha256()
            while data := connection.recv(65536):
                digest.update(data)
            connection.sendall(digest.digest())

    with ends.far.inside(), socket.create_server((ends.far.address, 0)) as server:
        there = threading.Thread(target=answer, args=(server,))
        there.start()
        with ends.near.inside(), socket.create_connection(server.getsockname()[:2]) as one:
            one.sendall(MUCH)
            one.shutdown(socket.SHUT_WR)
            got = one.recv(64)
        there.join()
    return got


def test_what_is_lost_is_sent_again_by_the_kernel_and_every_byte_arrives(ends: Ends) -> None:
    resent_before, before = resent(ends.near), ends.wire.counts[OUT]
    assert send_much(ends) == sha256(MUCH).digest()
    good = ends.wire.counts[OUT]
    resent_good = resent(ends.near) - resent_before  # none, unless a busy machine made something late
    assert good.lost == before.lost
    assert good.carried - before.carried > len(MUCH) / 1500  # no frame is larger than the wire's
    ends.wire.be(0.005, 0.002, loss=0.03)
    assert send_much(ends) == sha256(MUCH).digest()
    bad = ends.wire.counts[OUT]
    assert bad.lost - good.lost > 0.01 * len(MUCH) / 1500
    assert resent(ends.near) - resent_before - resent_good >= max(resent_good, 0.5 * (bad.lost - good.lost))


def test_a_deaf_wire_lets_nothing_through_until_it_is_good_again(ends: Ends) -> None:
    ends.wire.be(loss=1.0)
    before = ends.wire.counts[OUT]
    with ends.far.inside(), socket.create_server((ends.far.address, 0)) as server, ends.near.inside():
        with pytest.raises(TimeoutError):
            socket.create_connection(server.getsockname()[:2], timeout=0.1)
        now = ends.wire.counts[OUT]
        assert now.carried <= before.carried + before.held and now.lost > before.lost
        ends.wire.be()
        socket.create_connection(server.getsockname()[:2], timeout=5.0).close()


def test_a_lost_request_for_a_connection_costs_the_kernels_second(ends: Ends) -> None:
    connect_s(ends)
    ends.wire.lose_syns(1)
    assert connect_s(ends) > 0.9
    assert connect_s(ends) < 0.5


def test_the_kernel_measures_the_delay_as_its_round_trip(ends: Ends) -> None:
    ends.wire.be(DELAY_S)
    measured_s = [round_trip_s(ends) for _ in range(5)]
    assert min(measured_s) >= 2 * DELAY_S
    assert median(measured_s) < 2 * DELAY_S + SLACK_S


def round_trip_s(ends: Ends) -> float:
    """Returns what the kernel takes for the round trip's time of a new connection."""
    with (
        ends.far.inside(), socket.create_server((ends.far.address, 0)) as server, ends.near.inside(),
        socket.create_connection(server.getsockname()[:2]) as one,
    ):  # fmt: skip
        (smoothed_us,) = struct.unpack_from("I", one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104), RTT_AT)
    return float(smoothed_us) / 1e6
