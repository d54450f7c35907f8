"""Asks a real engine for its own counters, past the gateway."""

from __future__ import annotations

import re
import urllib.request

from home import Home


def requests_running(home: Home, service: str) -> int:
    """Returns how many requests the engine of a service is answering, by llama.cpp's own metrics."""
    return _read(home, service, "requests_processing")


def tokens_generated(home: Home, service: str) -> int:
    """Returns how many tokens the engine of a service has generated, by llama.cpp's own metrics."""
    return _read(home, service, "tokens_predicted_total")


def _read(home: Home, service: str, name: str) -> int:
    address = home.service(service).address
    key = home.paths.engine_key_file.read_text().strip()
    request = urllib.request.Request(f"{address}/metrics", headers={"authorization": f"Bearer {key}"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=10) as reply:  # noqa: S310
        found = re.search(rf"^llamacpp:{name} (\d+)", reply.read().decode(), re.MULTILINE)
    assert found is not None
    return int(found[1])
