"""Finds the key that an engine asks of its clients, in the words and variables with which somebody started it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

KEY_FLAG = "--api-key"
KEY_VARIABLES = ("VLLM_API_KEY", "LLAMA_API_KEY")


def read_key(words: Sequence[str], variables: Sequence[str]) -> str | None:
    """Returns the key, or None where it asks for none; `variables` are `NAME=value`. A flag goes before a variable."""
    spelled = [(word.partition("=")[0].replace("_", "-"), word) for word in words]
    for (flag, word), after in pairwise([*spelled, ("", "")]):
        if flag == KEY_FLAG:
            return _first(word.partition("=")[2] if "=" in word else after[1])
    said = dict(one.split("=", 1) for one in variables if "=" in one)
    return next((_first(said[name]) for name in KEY_VARIABLES if said.get(name)), None)


def _first(keys: str) -> str | None:
    """Returns the first of several: llama-server takes them divided by commas."""
    return keys.split(",")[0] or None
