"""Finds the engines on the search path, with their versions where those are cheap to find out."""

from __future__ import annotations

import re

from stoker.box import Box
from stoker.facts.engine.venv import read_venv, venv_of_program
from stoker.records import InstalledEngine

PROGRAMS = {"vllm": "vllm", "sglang": "sglang", "llama-server": "llamacpp"}
PRINTED = re.compile(r"^version:\s*(\S+)", re.MULTILINE)


def read_program(box: Box, name: str) -> InstalledEngine | None:
    """Returns one engine's program; None where the search path has none of that name."""
    path = box.find_program(name)
    if path is None:
        return None
    engine = PROGRAMS[name]
    if engine == "llamacpp":
        printed = PRINTED.search(box.run((path, "--version")) or "")
        return InstalledEngine(engine, path, printed[1] if printed else None)
    # `vllm --version` imports torch, which takes seconds; the packages' notes beside it say the same at once.
    folder = venv_of_program(box, path)
    inside = read_venv(box, folder) if folder else None
    return InstalledEngine(engine, path, inside.version if inside and inside.engine == engine else None)
