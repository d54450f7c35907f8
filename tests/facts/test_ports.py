"""Which ports are taken, and by whom."""

from __future__ import annotations

import os
import socket

import pytest

from stoker.box import LocalBox
from stoker.facts.machine.ports import count_connections, is_port_free, pick_free_port, read_listener


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
