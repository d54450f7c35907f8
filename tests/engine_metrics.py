"""Asks a real engine for its own counters, past the gateway."""

from __future__ import annotations

import contextlib
import re
import urllib.request
from collections.abc import Iterator

from home import Home, wait_for

# The demo model's context holds 4,096 tokens: a stream that nobody ends makes about that many.
SHORT_TOKENS = 2000


def read_counter(home: Home, service: str, name: str) -> int:
    """Returns one of the numbers in llama.cpp's own metrics."""
    address = home.service(service).address
    key = home.paths.engine_key_file.read_text().strip()
    request = urllib.request.Request(f"{address}/metrics", headers={"authorization": f"Bearer {key}"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=10) as reply:  # noqa: S310
        found = re.search(rf"^llamacpp:{name} (\d+)$", reply.read().decode(), re.MULTILINE)
    assert found is not None
    return int(found[1])


def requests_running(home: Home, service: str) -> int:
    """Returns how many requests the engine of a service is answering."""
    return read_counter(home, service, "requests_processing")


@contextlib.contextmanager
def cut_short(home: Home, service: str) -> Iterator[None]:
    """Expects of an endless request that its engine is soon free of it, and not because the context was full."""
    before = read_counter(home, service, "tokens_predicted_total")
    yield
    wait_for("the engine to have nothing to do", lambda: requests_running(home, service) == 0)
    made = read_counter(home, service, "tokens_predicted_total") - before
    assert made < SHORT_TOKENS, f"the engine made {made} tokens, most of them for nobody"
