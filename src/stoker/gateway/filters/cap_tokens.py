"""Caps how many tokens a request may ask for."""

from __future__ import annotations

from typing import Any

from stoker.gateway.filters import CHAT, COMPLETIONS, MESSAGES, RESPONSES, Fields, Filter, RequestPart

LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "n_predict")  # the last is llama.cpp's own
# The names of the limit where a request that says none gets one, under the first of them. A plain completion does not:
# vLLM and SGLang give it 16 tokens by themselves.
UNSAID = {CHAT: ("max_tokens", "max_completion_tokens"), RESPONSES: ("max_output_tokens",)}


def _make(said: str) -> RequestPart:
    most = int(said) if said.isascii() and said.isdigit() else 0
    if most < 1:
        raise ValueError("it takes a number of tokens, 1 or more")

    def cap(path: str, fields: Fields) -> None:
        for name in LIMITS:
            if _is_over(fields.get(name), most):
                fields.set(name, most)
        names = UNSAID.get(path, ())
        if names and all(fields.get(name) is None for name in names):
            fields.set(names[0], most)

    return cap


def _is_over(value: Any, most: int) -> bool:
    """Tells whether a limit lets through more than that; below 0 means without end for llama.cpp."""
    if isinstance(value, str):  # vLLM and SGLang take "9000" for a number
        try:
            value = float(value)
        except ValueError:
            return False
    return isinstance(value, int | float) and not isinstance(value, bool) and (value < 0 or value > most)


FILTER = Filter(
    name="cap-tokens",
    summary="Caps max_tokens and its other names; a chat that says no limit gets the cap as its limit.",
    why="A reply without a limit, as llama.cpp's is by default, goes on until the context is full, and holds its slot and "
    "its part of the KV cache as long. A plain completion that says no limit is left to the engine.",
    paths=frozenset({CHAT, COMPLETIONS, RESPONSES, MESSAGES}),
    takes="TOKENS",
    example="cap-tokens=4096",
    request=_make,
)
