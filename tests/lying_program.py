"""The lying engine as a program, started with llama-server's words; a file says how it lies, and is read at each request.

Beside the lies of `lying_engine` it has two for requests in whose body a text occurs: "dies-at TEXT", and "waits-at TEXT"
for as long as it is told to.
"""

from __future__ import annotations

import json
import os
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from fake_engine import write_program
from lying_engine import Server


class Program(Server):
    """An engine that lies as a file says."""

    def __init__(self, file: Path, model: str, port: int) -> None:
        super().__init__(read_lies(file), model, port, os.environ["LLAMA_API_KEY"])
        self.file = file

    def begin(self, body: dict[str, Any]) -> None:
        """Reads how to lie now."""
        text = json.dumps(body)
        while self._meant("waits-at ", text):
            time.sleep(0.005)
        if self._meant("dies-at ", text):
            os._exit(9)

    def _meant(self, lie: str, text: str) -> bool:
        self.lies = read_lies(self.file)
        return any(one.startswith(lie) and one.removeprefix(lie) in text for one in self.lies)


def read_lies(file: Path) -> frozenset[str]:
    """Returns how it is to lie."""
    return frozenset(json.loads(file.read_text()))


def write_lies(folder: Path, *lies: str) -> None:
    """Says how it is to lie from now on."""
    fresh = folder / "lies.new"
    fresh.write_text(json.dumps(lies))
    fresh.rename(folder / "lies.json")


def main(file: str, words: list[str]) -> None:
    """Serves until it is told to stop."""
    if words == ["--version"]:
        print("version: 1 (lying)")
        return
    options = dict(pairwise(words))
    Program(Path(file), options["--alias"], int(options["--port"])).serve_forever()


def write_lying_engine(folder: Path, *lies: str) -> Path:
    """Writes a program that lies in these ways, to be named as a service's `server`."""
    folder.mkdir(parents=True, exist_ok=True)
    write_lies(folder, *lies)
    return write_program(folder / "lying-llama-server", "lying_program", folder / "lies.json")
