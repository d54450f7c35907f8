"""Runs the server that knows the truth, and asks it beside a measurement."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
WORDS = b"the of and to in is was he for it with as his on be at by had not are but from or have an they which one you "


@contextlib.contextmanager
def truth_server() -> Iterator[str]:
    """Runs the server in a process of its own; yields its address."""
    words = [sys.executable, "-m", "benchmarks.bench_accuracy.truth_server"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


class _Book(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(600 * WORDS)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def book_server() -> Iterator[str]:
    """Serves a text to tools that make their prompts from one; yields its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Book) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/book.txt"
        server.shutdown()


def call(url: str, body: Any = None) -> Any:
    """Asks the server something beside the measurement."""
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data=data), timeout=30) as reply:  # noqa: S310
        return json.load(reply)
