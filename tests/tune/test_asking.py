"""What `stoker tune` says and asks in a terminal before it starts anything."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys

import pytest

from home import LIMIT_S, Home
from support import DEMO

TABLE = f'[service.coder]\nmodel = "{DEMO}"\nspeculation = "off"\n'
QUESTION = "Begin? [Y/n]: "


@pytest.mark.parametrize(
    ("words", "service", "starts", "measuring"),
    [(("coder",), "coder", 4, "2 min 0 s"), ((), "demo", 8, "4 min 0 s")],
    ids=["named", "nobody named it"],
)
def test_whoever_says_no_in_a_terminal_finds_everything_as_it_was(
    home: Home, words: tuple[str, ...], service: str, starts: int, measuring: str
) -> None:
    home.configure(TABLE)
    argv = [sys.executable, "-m", "stoker", "tune", *words, "--measure", "10s"]
    ours, theirs = pty.openpty()
    with subprocess.Popen(argv, env=home.environment, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        said = read_until(ours, QUESTION)
        os.write(ours, b"n\n")
        rest = read_until(ours, "nothing was started")
        assert process.wait(LIMIT_S) == 1
    os.close(ours)
    text = " ".join((said + rest).split())
    assert f"{service} (llamacpp): how it drafts, for prose, one request at a time. Now: off" in text
    assert f"at most {starts} times" in text
    assert f"measuring takes up to {measuring}" in text
    assert not home.daemon_answers


def read_until(terminal: int, words: str) -> str:
    """Reads what a terminal shows until it shows these words."""
    shown = ""
    while words not in shown:
        ready, _, _ = select.select([terminal], [], [], LIMIT_S)
        assert ready, f"{words!r} did not come: {shown!r}"
        shown += os.read(terminal, 4096).decode()
    return shown
