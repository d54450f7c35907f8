"""What must work also where the daemon's status cannot be read: stopping."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

from home import Home

BROKEN = "/api/status"


class Between(BaseHTTPRequestHandler):
    """Stands between the verbs and the daemon, and lets everything pass but the status."""

    daemon_address = ""

    def do_GET(self) -> None:
        """Passes a request on."""
        if self.path == BROKEN:
            self.send_error(500, "broken on purpose")
            return
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        with closing(http.client.HTTPConnection(self.daemon_address, timeout=60)) as daemon:
            daemon.request(self.command, self.path, body, {"authorization": self.headers.get("authorization", "")})
            reply = daemon.getresponse()
            said = reply.read()
        self.send_response(reply.status)
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    do_POST = do_GET  # noqa: N815 - the library calls it so

    def log_message(self, *words: object) -> None:
        """Says nothing."""


@pytest.fixture
def between(home: Home) -> Iterator[Home]:
    """A Stoker with two services, whose verbs cannot read the status."""
    home.add_fake("one")
    home.add_fake("two")
    home.run("up", "one")
    home.run("up", "two")

    class Here(Between):
        daemon_address = urlsplit(home.daemon.url).netloc

    server = ThreadingHTTPServer(("127.0.0.1", 0), Here)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home.paths.address_file.write_text(f"http://127.0.0.1:{server.server_address[1]}")
    yield home
    server.shutdown()
    server.server_close()


def test_down_stops_every_service_and_the_daemon(between: Home) -> None:
    said = between.run("down").stdout
    assert "The daemon has ended." in said
    assert between.daemon_pid is None
    assert {view["name"]: view["state"] for view in between.json("status")["services"]} == {
        "one": "STOPPED",
        "two": "STOPPED",
    }
