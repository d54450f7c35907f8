"""The real llama.cpp with the demo model, as the program that Stoker starts, without a Stoker around it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import urllib.request
from collections.abc import Iterator

from home import wait_for
from stoker.facts.machine.ports import pick_free_port
from support import DEMO

ALIAS = "demo"


@contextlib.contextmanager
def embedded_engine(*words: str) -> Iterator[str]:
    """Runs the embedded engine; yields its address."""
    port = pick_free_port("127.0.0.1")
    common = ("--model", str(DEMO), "--alias", ALIAS, "--host", "127.0.0.1", "--port", str(port), "--metrics", "--jinja")
    argv = [sys.executable, "-P", "-m", "stoker.embedded", *common, "--no-webui", "--ctx-size", "8192", "--parallel", "4"]
    with subprocess.Popen([*argv, "--threads", "1", *words], stderr=subprocess.DEVNULL) as process:
        try:
            wait_for("the engine", lambda: _answers(f"http://127.0.0.1:{port}/health"))
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _answers(url: str) -> bool:
    with contextlib.suppress(OSError):
        return bool(urllib.request.urlopen(url, timeout=5).status == 200)  # noqa: S310
    return False
