"""Asks a real engine for its own counters, past the gateway."""

from __future__ import annotations

import re
import urllib.request

from home import Home


def requests_running(home: Home, service: str) -> int:
    """Returns how many requests the engine of a service is answering, by llama.cpp's own metrics."""
    address = home.service(service).address
    key = home.paths.engine_key_file.read_text().strip()
    request = urllib.request.Request(f"{address}/metrics", headers={"authorization": f"Bearer {key}"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=10) as reply:  # noqa: S310
        found = re.search(r"^llamacpp:requests_processing (\d+)", reply.read().decode(), re.MULTILINE)
    assert found is not None
    return int(found[1])
