"""The daemon tells systemd when it listens, so that what waits for it does not start a second one."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from stoker.flows.notify import tell_ready


@pytest.mark.parametrize("abstract", [False, True])
def test_one_datagram_says_that_it_is_ready(tmp_path: Path, abstract: bool) -> None:
    name = f"@stoker-test-{tmp_path.name}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(f"\0{name[1:]}" if abstract else name)
        systemd.settimeout(5)
        assert tell_ready({"NOTIFY_SOCKET": name})
        assert systemd.recv(64) == b"READY=1"


@pytest.mark.parametrize(
    "environment", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "relative"}, {"NOTIFY_SOCKET": "/no/such"}]
)
def test_without_anybody_to_tell_nothing_happens(environment: dict[str, str]) -> None:
    assert not tell_ready(environment)
