"""Open WebUI, in the environment that tools/make-open-webui made, chatting through the gateway in a real Chromium."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from home import LIMIT_S, Home, wait_for

PYTHON = os.environ.get("STOKER_OPEN_WEBUI", "")
LOADING_S = 240.0  # it imports for a minute, and longer on a busy machine
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
pytestmark = [
    pytest.mark.elsewhere(bool(PYTHON), "Open WebUI (`make test-clients`)"),
    pytest.mark.elsewhere(bool(CHROMIUM), "Chromium"),
]


def free_port() -> int:
    """Returns a port that nobody listens on, and that the system gives to nobody until Open WebUI has loaded."""
    for port in random.sample(range(20_000, 30_000), 100):
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no free port among 100")


@contextlib.contextmanager
def open_webui(home: Home) -> Iterator[str]:
    """Runs Open WebUI with Stoker as its only server; gives its address."""
    port = free_port()
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(home.folder), "DATA_DIR": str(home.folder / "webui"), "WEBUI_AUTH": "false",
        "OFFLINE_MODE": "true", "HF_HUB_OFFLINE": "1", "ENABLE_OLLAMA_API": "false", "RAG_EMBEDDING_ENGINE": "openai",
        # Its own tools are described to the model in 9,000 tokens; the demo model has 4,096.
        "DEFAULT_MODEL_PARAMS": '{"function_calling": "legacy"}',
        "DEFAULT_MODEL_METADATA": '{"capabilities": {"builtin_tools": false}}',
        "WEBUI_SECRET_KEY": "x", "OPENAI_API_BASE_URL": f"{home.daemon.url}/v1", "OPENAI_API_KEY": home.daemon.key,
        "ENABLE_TITLE_GENERATION": "false", "ENABLE_TAGS_GENERATION": "false", "ENABLE_FOLLOW_UP_GENERATION": "false",
    }  # fmt: skip
    program = str(Path(PYTHON).with_name("open-webui"))
    log = (home.folder / "webui.log").open("w")
    argv = [program, "serve", "--host", "127.0.0.1", "--port", str(port)]
    with log, subprocess.Popen(argv, env=environment, stdout=log, stderr=log, cwd=home.folder) as running:
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            running.terminate()


def is_answering(url: str) -> bool:
    """Tells whether Open WebUI is there."""
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=LIMIT_S) as reply:  # noqa: S310
            return bool(json.load(reply) == {"status": True})
    except OSError:
        return False


def test_a_person_chats_in_open_webui(home: Home) -> None:
    home.run("up")
    with open_webui(home) as url:
        wait_for("Open WebUI", lambda: is_answering(url), LOADING_S)
        story = str(Path(__file__).with_name("browser_story.py"))
        argv = [PYTHON, story, url, CHROMIUM, str(home.folder / "webui.png")]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr + (home.folder / "webui.log").read_text()[-3000:]
    told = json.loads(done.stdout)
    assert any("stoker-demo" in model for model in told["models"])
    assert "Stoker" in told["answer"]
