"""How wide llama.cpp's cache keeps a value, where flags or variables of the user's say so. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from stoker.facts.model.gguf import TENSOR_TYPES
from stoker.plan.budget import SIXTEEN_BIT_BYTES
from stoker.records import Setting

# A flag goes before its variable. A draft's cache has flags of its own, and stays at 16 bits here.
KEYS = ("--cache-type-k", "$LLAMA_ARG_CACHE_TYPE_K")
VALUES = ("--cache-type-v", "$LLAMA_ARG_CACHE_TYPE_V")
VALUE_BYTES = {name.lower(): block_bytes / elements for name, elements, block_bytes in TENSOR_TYPES.values()}


def cache_value_bytes(settings: Iterable[Setting]) -> float:
    """Returns the bytes of one value: of keys and values the wider one, 16 bits where nothing is said or nothing known."""
    said = {one.name.replace("_", "-") if one.name.startswith("-") else one.name: str(one.value) for one in settings}
    return max(_width(next((said[name] for name in names if name in said), "")) for names in (KEYS, VALUES))


def _width(word: str) -> float:
    return VALUE_BYTES.get(word.lower(), SIXTEEN_BIT_BYTES)
