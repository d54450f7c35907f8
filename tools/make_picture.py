"""Draws `docs/picture.svg` from a real run: the commands below are run here and now, and their output is what is drawn."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

TARGET = Path(__file__).parent.parent / "docs" / "picture.svg"
COMMANDS = (
    ("up",),
    ("ask", "--temperature", "0", "Who are you?"),
    ("ask", "--temperature", "0", "Write a function that reverses a string."),
    ("status",),
)
LINES_OF_UP = 9
COLUMNS = 112


def run(environment: dict[str, str], words: tuple[str, ...]) -> str:
    """Runs a verb on a terminal of its own and returns what it printed, colours and all."""
    parent, child = pty.openpty()
    argv = [sys.executable, "-P", "-m", "stoker", *words]
    with subprocess.Popen(argv, env=environment, stdout=child, stderr=child, stdin=child, close_fds=True):
        os.close(child)
        pieces = []
        try:
            while piece := os.read(parent, 65536):
                pieces.append(piece)
        except OSError:  # the terminal is closed when the program ends
            pass
    os.close(parent)
    return b"".join(pieces).decode().replace("\r\n", "\n")


def main() -> None:
    """Runs the commands and writes the picture."""
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115, PTH123
    with tempfile.TemporaryDirectory(prefix="stoker-") as folder:
        home = {"HOME": folder, "XDG_STATE_HOME": f"{folder}/.local/state", "XDG_CONFIG_HOME": f"{folder}/.config"}
        environment = {**os.environ, **home, "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
        for words in COMMANDS:
            shown = " ".join(f'"{word}"' if " " in word else word for word in words)
            console.print(Text(f"$ stoker {shown}", style="bold"))
            lines = run(environment, words).replace(folder, "~").splitlines()
            kept = lines[:LINES_OF_UP] if words == ("up",) else lines
            console.print(Text.from_ansi("\n".join(_hide_key(line) for line in kept)))
            console.print()
        run(environment, ("down",))
    TARGET.write_text(console.export_svg(title="stoker"))


def _hide_key(line: str) -> str:
    begin = line.find("sk-stoker-")
    return line if begin < 0 else line[: begin + 14] + "…" + line[begin + 53 :]


if __name__ == "__main__":
    main()
