"""Asks the control API, or the gateway, as a program without Stoker would."""

from __future__ import annotations

import http.client
import json
from typing import Any

from home import Home


def call(home: Home, method: str, path: str, body: object = None, *, control: bool = True) -> tuple[int, Any]:
    """Sends one request; returns the status, and the reply's JSON where it is."""
    daemon = home.daemon
    key = home.paths.control_key_file.read_text().strip() if control else daemon.key
    connection = http.client.HTTPConnection(daemon.url.removeprefix("http://"), timeout=60)
    connection.request(method, path, json.dumps(body) if body is not None else None, {"authorization": f"Bearer {key}"})
    reply = connection.getresponse()
    raw = reply.read()
    connection.close()
    return reply.status, json.loads(raw) if reply.headers["content-type"] == "application/json" else raw.decode()
