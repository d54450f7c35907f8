"""What open dashboards cost the daemon: processor time and memory, with none, one and twenty of them.

`python -m benchmarks.dashboard`: a daemon with the demo model; each page is a client that hears the events, as a
browser would.
"""

from __future__ import annotations

import argparse
import http.client
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests")]

from home import Home  # noqa: E402
from page_client import Browser  # noqa: E402


class Pages:
    """So many clients that hear events, until they are closed."""

    def __init__(self, home: Home, count: int) -> None:
        browser = Browser(home)
        self.heard_bytes = 0
        self._open = [self._connect(home, browser) for _ in range(count)]
        self._threads = [threading.Thread(target=self._hear, args=(reply,)) for _, reply in self._open]
        for one in self._threads:
            one.start()

    @staticmethod
    def _connect(home: Home, browser: Browser) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = http.client.HTTPConnection(home.daemon.url.removeprefix("http://"), timeout=60)
        connection.request("GET", "/api/events", headers={"cookie": browser.cookie})
        return connection, connection.getresponse()

    def _hear(self, reply: http.client.HTTPResponse) -> None:
        try:
            while line := reply.readline():
                self.heard_bytes += len(line)
        except (OSError, ValueError, AttributeError):
            return  # it was closed

    def close(self) -> None:
        """Leaves, as a closed page does."""
        for connection, _ in self._open:
            if connection.sock is not None:
                connection.sock.shutdown(2)
        for one in self._threads:
            one.join()


def measure(home: Home, count: int, seconds: float) -> str:
    """Returns a line of what so many pages cost in so many seconds."""
    daemon = psutil.Process(home.daemon_pid)
    pages = Pages(home, count)
    time.sleep(2)
    before, heard = daemon.cpu_times(), pages.heard_bytes
    began = time.monotonic()
    time.sleep(seconds)
    after, took_s = daemon.cpu_times(), time.monotonic() - began
    share = (after.user + after.system - before.user - before.system) / took_s
    rate = (pages.heard_bytes - heard) / max(1, count) / took_s
    resident = daemon.memory_info().rss / 1024**2
    pages.close()
    return f"{count:>3} pages: {share * 100:5.2f} % of a core, {resident:5.1f} MiB resident, {rate:6.0f} bytes/s a page"


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        try:
            home.run("up")
            for count in (0, 1, 20, 0):
                print(measure(home, count, seconds), flush=True)
        finally:
            home.end()


if __name__ == "__main__":
    main()
