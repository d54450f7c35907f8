"""What the real clients make of a stream whose engine dies: none takes half an answer for a whole one."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest
from mistralai.client import Mistral
from mistralai.client.errors import MistralError

from home import Home

HELLO: Any = [{"role": "user", "content": "hi"}]
CURL_PARTIAL = 18
DIED = "broke the connection before its reply was whole"


@pytest.fixture
def gate(home: Home) -> Path:
    """The file that lets the scripted engine `mortal` die in the middle of its streams."""
    home.add_fake("mortal", dies="streaming", stream_gate=str(home.folder / "gate"))
    home.run("up", "mortal")
    return home.folder / "gate"


def by_openai(home: Home, read_on: Callable[[], object]) -> None:
    with openai.OpenAI(base_url=f"{home.daemon.url}/v1", api_key=home.daemon.key, max_retries=0) as client:
        stream = client.chat.completions.create(model="mortal", messages=HELLO, stream=True)
        next(iter(stream))
        read_on()
        with pytest.raises(openai.APIError, match=DIED):
            list(stream)


def by_anthropic(home: Home, read_on: Callable[[], object]) -> None:
    daemon = home.daemon
    with anthropic.Anthropic(base_url=daemon.url, auth_token=daemon.key, api_key=None, max_retries=0) as client:
        stream = client.messages.create(model="mortal", messages=HELLO, max_tokens=9, stream=True)
        read_on()
        with pytest.raises(anthropic.APIStatusError, match=DIED):
            list(stream)


def by_mistral(home: Home, read_on: Callable[[], object]) -> None:
    mistral = Mistral(api_key=home.daemon.key, server_url=home.daemon.url)
    with mistral as client, client.chat.stream(model="mortal", messages=HELLO) as events:
        next(iter(events))
        read_on()
        # It has no notion of an error in a stream: its reader of events fails at one, or the transfer does.
        with pytest.raises((MistralError, httpx.RemoteProtocolError, ValueError)):
            list(events)


@pytest.mark.parametrize("ask", [by_openai, by_anthropic, by_mistral])
def test_a_library_raises(home: Home, gate: Path, ask: Callable[[Home, Callable[[], object]], None]) -> None:
    ask(home, gate.touch)


@pytest.mark.elsewhere(bool(shutil.which("curl")), "curl")
@pytest.mark.parametrize(("words", "code"), [((), CURL_PARTIAL), (("--http1.0",), 0)], ids=["HTTP/1.1", "HTTP/1.0"])
def test_curl_prints_the_error_and_says_that_bytes_are_missing(
    home: Home, gate: Path, words: tuple[str, ...], code: int
) -> None:
    body = json.dumps({"model": "mortal", "messages": HELLO, "stream": True})
    argv = ["curl", "-sSN", *words, "-H", f"authorization: Bearer {home.daemon.key}", "-d", body]
    with subprocess.Popen([*argv, f"{home.daemon.url}/v1/chat/completions"], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline().startswith("data: ")
        gate.touch()
        rest, _ = running.communicate(timeout=60)
    assert DIED in rest
    assert "[DONE]" not in rest
    assert running.returncode == code
