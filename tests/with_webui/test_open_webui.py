"""Open WebUI, in the environment that tools/make-clients made, chatting through the gateway in a real Chromium."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest

from home import LIMIT_S, Home, wait_for
from stoker.facts.machine.ports import pick_free_port

PYTHON = os.environ.get("STOKER_OPEN_WEBUI", "")
LOADING_S = 240.0  # it imports for a minute, and longer on a busy machine
STORY_LIMIT_S = 400.0
QUESTION = "Who are you?"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
pytestmark = [
    pytest.mark.elsewhere(bool(PYTHON), "Open WebUI (`make test-clients`)"),
    pytest.mark.elsewhere(bool(CHROMIUM), "Chromium"),
]


@contextlib.contextmanager
def open_webui(home: Home) -> Iterator[str]:
    """Runs Open WebUI with Stoker as its only server, until it answers; gives its address."""
    port = pick_free_port("127.0.0.1")
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(home.folder), "DATA_DIR": str(home.folder / "webui"), "WEBUI_AUTH": "false",
        "OFFLINE_MODE": "true", "HF_HUB_OFFLINE": "1", "ENABLE_OLLAMA_API": "false", "RAG_EMBEDDING_ENGINE": "openai",
        # Its own tools are described to the model in 9,000 tokens; the demo model has 4,096. At 0 the answer is known.
        "DEFAULT_MODEL_PARAMS": '{"function_calling": "legacy", "temperature": 0}',
        "DEFAULT_MODEL_METADATA": '{"capabilities": {"builtin_tools": false}}',
        "WEBUI_SECRET_KEY": "x", "OPENAI_API_BASE_URL": f"{home.daemon.url}/v1", "OPENAI_API_KEY": home.daemon.key,
        "ENABLE_TITLE_GENERATION": "false", "ENABLE_TAGS_GENERATION": "false", "ENABLE_FOLLOW_UP_GENERATION": "false",
    }  # fmt: skip
    program = str(Path(PYTHON).with_name("open-webui"))
    log, url = home.folder / "webui.log", f"http://127.0.0.1:{port}"
    argv = [program, "serve", "--host", "127.0.0.1", "--port", str(port)]
    with (
        log.open("w") as output,
        subprocess.Popen(argv, env=environment, stdout=output, stderr=output, cwd=home.folder) as running,
    ):
        try:
            wait_for("Open WebUI or its end", lambda: is_answering(url) or running.poll() is not None, LOADING_S)
            assert running.returncode is None, "Open WebUI has ended"
            yield url
        finally:
            running.kill()  # nothing of it is kept
            print(log.read_text()[-3000:])


def is_answering(url: str) -> bool:
    """Tells whether Open WebUI is there."""
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=LIMIT_S) as reply:  # noqa: S310
            return bool(json.load(reply) == {"status": True})
    except OSError:
        return False


def whole_answer(home: Home) -> str | None:
    """Returns what the model answers where its answer is not streamed."""
    with openai.OpenAI(base_url=f"{home.daemon.url}/v1", api_key=home.daemon.key, max_retries=0) as client:
        asked = client.chat.completions.create(
            model="stoker-demo", messages=[{"role": "user", "content": QUESTION}], temperature=0
        )
    return asked.choices[0].message.content


def test_a_person_is_offered_the_model_and_given_its_answer(home: Home) -> None:
    home.run("up")
    expected = whole_answer(home)
    with open_webui(home) as url:
        story = str(Path(__file__).with_name("browser_story.py"))
        argv = [PYTHON, story, url, CHROMIUM, str(home.folder / "webui.png"), QUESTION]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=STORY_LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert [model.split()[0] for model in told["models"]] == ["stoker-demo"]
    assert told["answer"].strip() == expected
