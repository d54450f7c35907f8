"""Large clients, in the environment that tools/make-clients made, against the gateway with the demo model."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from engine_metrics import cut_short, requests_running
from home import Home, wait_for

PYTHON = os.environ.get("STOKER_CLIENTS", "")
SCHEMATHESIS = (
    # Left out: what fits a type may be refused all the same, OPTIONS names more methods than a path takes, and an address
    # that sent many wrong keys is told 429 (tests/web/test_openapi.py asks every path without a key).
    "--checks", "all", "--exclude-checks", "positive_data_acceptance,allow_header_conformance,ignored_auth",
    "--max-examples", "40", "--max-response-time", "60",  # a use that waits for a change waits half a minute
    "--phases", "examples,coverage,fuzzing", "--request-timeout", "60", "--suppress-health-check", "all", "--seed", "1",
    "--no-color",
)  # fmt: skip
STORY_LIMIT_S = 240
HERE = Path(__file__).parent
pytestmark = pytest.mark.elsewhere(bool(PYTHON), "the clients of `make test-clients`")


def npms_openai(story: str, home: Home) -> tuple[str, ...]:
    """Returns the words that play a story of npm's `openai`, in the Node that came with it."""
    environment = Path(PYTHON).parents[1]
    node = str(environment / "bin" / "node")
    return node, str(HERE / story), str(environment / "npm"), home.daemon.url, home.daemon.key


def play(*argv: str, **environment: str) -> Any:
    """Runs a story to its end; returns what it told in its last line."""
    variables = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", **environment}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=STORY_LIMIT_S, env=variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


def test_litellm_is_answered_and_refused(demo: Home) -> None:
    told = play(PYTHON, str(HERE / "litellm_story.py"), demo.daemon.url, demo.daemon.key)
    assert told["model"].endswith("stoker-demo")
    assert told["stream"] == told["whole"] != ""
    assert told["unknown"][0] == 404
    assert "no other answers in its place" in told["unknown"][1]
    assert told["wrong key"][0] == 401


def test_npms_openai_is_answered_and_refused(demo: Home) -> None:
    told = play(*npms_openai("openai_story.mjs", demo))
    assert told["models"] == ["stoker-demo"]
    assert told["stream"] == told["whole"] != ""
    assert told["call"]["name"] == "get_weather"
    assert json.loads(told["call"]["arguments"]) == {"city": "Lisbon"}
    assert told["unknown"][:2] == [404, "model_not_found"]
    assert told["wrong key"][:2] == [401, "invalid_api_key"]


def test_npms_openai_that_aborts_a_stream_ends_its_request_at_the_engine_and_asks_again(demo: Home) -> None:
    argv = ["timeout", str(STORY_LIMIT_S), *npms_openai("openai_abort_story.mjs", demo)]
    pipe = subprocess.PIPE
    with cut_short(demo, "demo"), subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True, bufsize=1) as story:
        assert story.stdin is not None
        assert story.stdout is not None
        assert story.stdout.readline() == "in the middle\n"
        assert requests_running(demo, "demo") == 1
        story.stdin.write("abort\n")
        assert story.stdout.readline() == "aborted\n"
        # Before it may go on: the end of its process would free the engine too.
        wait_for("the engine to have nothing to do", lambda: requests_running(demo, "demo") == 0)
        assert "Stoker" in story.communicate("ask again\n")[0]
    assert story.returncode == 0


@pytest.mark.parametrize("part", ["control", "gateway"])
def test_schemathesis_finds_no_fault_in_what_the_api_says_of_itself(home: Home, part: str) -> None:
    home.run("up")
    daemon = home.daemon
    control_key = home.paths.control_key_file.read_text().strip()
    document = home.folder / "openapi.json"
    words = ("curl", "-sS", "-H", f"authorization: Bearer {control_key}", f"{daemon.url}/api/openapi.json")
    document.write_bytes(subprocess.run(words, capture_output=True, check=True, timeout=60).stdout)
    is_control = part == "control"
    key = control_key if is_control else daemon.key
    argv = (
        str(Path(PYTHON).with_name("schemathesis")), "run", str(document), "--url", daemon.url, *SCHEMATHESIS,
        "--include-path-regex" if is_control else "--exclude-path-regex", "^/api/", "--exclude-path", "/api/stop",
        "-H", f"Authorization: Bearer {key}",  # in this spelling, in which it is left out to see whether a key is asked for
    )  # fmt: skip
    done = subprocess.run(argv, capture_output=True, text=True, timeout=500, cwd=home.folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert home.daemon.is_answering()
