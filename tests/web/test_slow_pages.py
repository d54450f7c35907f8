"""Pages that open their events and never read them, over real sockets: nobody else pays for them."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Generator
from contextlib import ExitStack, closing
from itertools import pairwise

import psutil
import pytest

from home import Home, wait_for
from page_client import Browser
from stoker.config import demo_model
from stoker.records import MIB
from stoker.web.events import SLOW_S

MANY, SLOW = 100, 10
SMALL_BYTES = 4096
MOST_BYTES = 10 * MIB  # of 60 MiB that they did not read
LONG = "x" * 60_000  # so that what a page is told first fits into no buffer of the kernel's (4 MiB)
TABLE = '[service.one-of-many-{number:03}]\nmodel = "{model}"\nserved_name = "{number:03}{long}"\n'


@pytest.fixture
def many(home: Home) -> Home:
    """A daemon with so many services that what a page is told first fits into no buffer of the kernel's."""
    tables = "".join(TABLE.format(number=number, model=demo_model(), long=LONG) for number in range(MANY))
    home.configure(tables)
    home.run("up", "demo")
    return home


class Deaf:
    """A page that asks for events and reads nothing."""

    def __init__(self, home: Home, browser: Browser) -> None:
        host, _, port = home.daemon.url.removeprefix("http://").rpartition(":")
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BYTES)
        self._socket.connect((host, int(port)))
        self.port = self._socket.getsockname()[1]
        request = f"GET /api/events HTTP/1.1\r\nhost: {host}:{port}\r\ncookie: {browser.cookie}\r\n\r\n"
        self._socket.sendall(request.encode())

    def close(self) -> None:
        self._socket.close()


def listen(home: Home, browser: Browser) -> Generator[float]:
    """Yields when each event came to a page that reads."""
    connection = http.client.HTTPConnection(home.daemon.url.removeprefix("http://"), timeout=60)
    connection.request("GET", "/api/events", headers={"cookie": browser.cookie})
    reply = connection.getresponse()
    try:
        for line in iter(reply.readline, b""):
            if line.startswith(b"data: {"):
                assert json.loads(line[6:])["names"]
                yield time.monotonic()
    finally:
        connection.close()


def served_ports(daemon: psutil.Process) -> set[int]:
    """The other ends of the connections that a daemon holds."""
    return {one.raddr.port for one in daemon.net_connections("tcp") if one.raddr}


def test_pages_that_do_not_read_cost_nobody_anything_and_are_let_go(many: Home) -> None:
    browser, daemon = Browser(many), psutil.Process(many.daemon_pid)
    events = listen(many, browser)
    next(events)
    before, begun_s = daemon.memory_info().rss, time.monotonic()
    with ExitStack() as open_pages:
        ports = {open_pages.enter_context(closing(Deaf(many, browser))).port for _ in range(SLOW)}
        wait_for("all to be served", lambda: ports <= served_ports(daemon))
        heard, most = [time.monotonic()], before
        while ports & served_ports(daemon):
            heard.append(next(events))
            most = max(most, daemon.memory_info().rss)
            assert heard[-1] - begun_s < SLOW_S * 4, "pages that read nothing were not let go"
    assert heard[-1] - begun_s > SLOW_S / 2, "they were refused, not served and given up"
    assert max(after - before for before, after in pairwise(heard)) < SLOW_S / 2, "one that reads waited for others"
    assert most - before < MOST_BYTES
    events.close()
