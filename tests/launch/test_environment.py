"""What an engine gets in its environment, and what it must not get."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from stoker.launch.process import MARKER_VARIABLE, render_launch
from support import make_plan

MARKER = "i1/small/3"


def environment_of(inherited: dict[str, str]) -> dict[str, str]:
    return dict(render_launch(make_plan(), 8000, MARKER, inherited).environment)


def test_every_launch_carries_its_marker_and_prints_without_delay() -> None:
    environment = environment_of({})
    assert MARKER_VARIABLE == "STOKER_ENGINE"
    assert environment[MARKER_VARIABLE] == MARKER
    assert environment["PYTHONUNBUFFERED"] == "1"


def test_a_marker_in_the_daemons_own_environment_does_not_win() -> None:
    assert environment_of({MARKER_VARIABLE: "other/x/1"})[MARKER_VARIABLE] == MARKER


@pytest.mark.parametrize(
    "name",
    [
        "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "OPENAI_API_KEY", "SSH_AUTH_SOCK", "LLAMA_API_KEY", "STOKER_KEY",
        "PGPASSWORD",
        "HF_TOKEN", "HF_HUB_TOKEN", "HUGGING_FACE_HUB_TOKEN", "NVIDIA_API_KEY", "NVIDIA_SECRET", "LLAMA_ARG_API_KEY",
        "LLAMA_ARG_HF_TOKEN", "XDG_SESSION_AUTH", "LD_PRELOAD", "PYTHONPATH", "PYTHONSTARTUP", "DBUS_SESSION_BUS_ADDRESS",
    ],
)  # fmt: skip
def test_what_an_engine_does_not_need_is_not_given_to_it(name: str) -> None:
    assert "hush" not in environment_of({name: "hush"}).values()


@pytest.mark.parametrize(
    "name",
    ["PATH", "HOME", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "HF_HOME", "OMP_THREADS"],
)
def test_what_an_engine_needs_is_kept(name: str) -> None:
    assert environment_of({name: "7"})[name] == "7"


def test_the_words_and_the_rest_of_the_launch_stay_as_the_engine_gave_them() -> None:
    spec = render_launch(make_plan(), 8000, MARKER, {"HOME": "/h"})
    assert "--port" in spec.argv
    assert spec.argv[spec.argv.index("--port") + 1] == "8000"
    assert spec.environment == tuple(sorted(spec.environment))
    assert spec.key_variable == "LLAMA_API_KEY"


def test_a_real_child_sees_the_marker_and_no_secret() -> None:
    inherited = {**os.environ, "GITHUB_TOKEN": "hush", "HF_TOKEN": "hush"}
    done = subprocess.run(
        (sys.executable, "-c", "import os; print(dict(os.environ))"),
        env=environment_of(inherited), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert MARKER in done.stdout
    assert "hush" not in done.stdout
