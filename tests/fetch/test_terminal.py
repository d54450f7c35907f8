"""`stoker fetch` on a terminal: a line that moves, and a question that waits for its answer."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from home import Home
from releases import REPOSITORY, add_incomplete, add_release
from small_hub import Hub

CLEAR = "\r\x1b[K"


def run_on_terminal(user: Home, repository: str, answer: str = "") -> tuple[int, str]:
    """Runs a fetch whose input and messages are a terminal; returns its exit code and what the terminal showed."""
    ours, theirs = pty.openpty()
    argv = (sys.executable, "-m", "stoker", "fetch", repository)
    process = subprocess.Popen(argv, env=user.environment, stdin=theirs, stderr=theirs, stdout=subprocess.DEVNULL)
    os.close(theirs)
    os.write(ours, answer.encode())
    shown = b""
    with open(ours, "rb", buffering=0) as terminal:  # noqa: PTH123 - a descriptor
        try:
            while block := terminal.read(4096):
                shown += block
        except OSError:  # the other end is closed: the program ended
            pass
    return process.wait(60), shown.decode()


def test_progress_is_one_line_that_moves(user: Home, hub: Hub, tmp_path: Path) -> None:
    add_release(hub, tmp_path)
    code, shown = run_on_terminal(user, REPOSITORY)
    assert code == 0
    assert shown.count("\n") == 1
    assert shown.rstrip().rpartition(CLEAR)[2].startswith("5 MiB of 5 MiB fetched")


def test_without_a_terminal_progress_is_a_plain_line(user: Home, hub: Hub, tmp_path: Path) -> None:
    add_release(hub, tmp_path)
    said = user.run("fetch", REPOSITORY).stderr
    # A rate is told once there is something to tell it by.
    assert re.fullmatch(r"5 MiB of 5 MiB fetched(, [\d.]+ MiB/s)?; 5 MiB verified\n", said)


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1)])
def test_files_from_elsewhere_are_asked_for(user: Home, hub: Hub, tmp_path: Path, answer: str, code: int) -> None:
    add_incomplete(hub, tmp_path)
    found, shown = run_on_terminal(user, "org/Tiny-1B-NVFP4", answer)
    assert "org/Tiny-1B-NVFP4 lacks tokenizer.json, tokenizer_config.json. Take them from org/Tiny-1B?" in shown
    assert found == code
    user.run("check", "org/Tiny-1B-NVFP4", code=code)
