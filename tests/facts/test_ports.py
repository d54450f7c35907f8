"""Which ports are taken, and by whom."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from stoker.box import LocalBox
from stoker.facts.machine.ports import GIVEN_AWAY, count_connections, is_port_free, pick_free_port, read_listener


class Given(LocalBox):
    """This machine with another range of ports that its kernel gives away."""

    def __init__(self, given: str) -> None:
        self.given = given

    def read(self, path: str) -> str | None:
        return self.given if path == GIVEN_AWAY else super().read(path)


@pytest.fixture
def listener() -> socket.socket:
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    return taken


def test_a_port_is_taken_while_somebody_listens_and_free_afterwards(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    assert not is_port_free("127.0.0.1", port)
    listener.close()
    assert is_port_free("127.0.0.1", port)


def test_a_picked_port_is_free() -> None:
    port = pick_free_port("127.0.0.1")
    assert 1024 <= port <= 65535
    assert is_port_free("127.0.0.1", port)


def test_a_picked_port_is_none_that_the_kernel_gives_away() -> None:
    with socket.socket() as asks:  # it may be read here, or the test could not fail
        asks.bind(("127.0.0.1", 0))
        low, high = (int(word) for word in Path(GIVEN_AWAY).read_text().split())
        assert low <= asks.getsockname()[1] <= high
    assert not [port for port in (pick_free_port("127.0.0.1") for _ in range(300)) if low <= port <= high]


@pytest.mark.parametrize(("given", "first", "last"), [("1024 64000", 64_001, 65_000), ("40000\t65535", 20_000, 39_999)])
def test_it_is_one_of_those_that_the_machine_leaves(given: str, first: int, last: int) -> None:
    ports = [pick_free_port("127.0.0.1", Given(given)) for _ in range(100)]
    assert first <= min(ports) <= max(ports) <= last


def test_one_that_is_meant_for_something_else_is_not_picked() -> None:
    both = Given("1024 64998")
    assert {pick_free_port("127.0.0.1", both, but=64_999) for _ in range(50)} == {65_000}


def test_where_the_kernel_gives_away_all_it_is_one_of_these() -> None:
    assert is_port_free("127.0.0.1", pick_free_port("127.0.0.1", Given("1024 65535")))


def test_who_listens_is_named_with_its_pid(listener: socket.socket) -> None:
    with listener:
        assert f"(pid {os.getpid()})" in (read_listener(listener.getsockname()[1]) or "")
    assert read_listener(pick_free_port("127.0.0.1")) is None


def test_a_connection_counts_while_it_is_open_and_shortly_after_and_a_listener_does_not(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    assert count_connections(LocalBox(), port) == 0
    with socket.create_connection(("127.0.0.1", port)) as client:
        served, _ = listener.accept()
        assert count_connections(LocalBox(), port) == 2  # the kernel lists both ends
        client.shutdown(socket.SHUT_WR)
        served.close()
    assert count_connections(LocalBox(), port) == 1
    listener.close()
