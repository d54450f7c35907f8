"""How many requests have room for their caches in a machine's memory, beside the weights. Pure."""

from __future__ import annotations

import math

from stoker.plan.speed.shape import MILLION, PARTS
from stoker.plan.speed.work import GIGA, Served, cached_bytes

USABLE = 0.9  # of the memory, as vLLM takes it unless told otherwise
EMBEDDING_BYTES = 2.0  # a parameter; engines keep these in 16 bits mostly


def weights_bytes(served: Served) -> float:
    """Returns what the weights take, all experts among them."""
    shape, layout = served.shape, served.layout
    stored = sum(shape.parameters(part) * layout.bytes_of(part) for part in PARTS)
    return stored + shape.embed * MILLION * EMBEDDING_BYTES


def room_for(served: Served, memory_bytes: float, tokens: float, draft: Served | None = None) -> float:
    """Returns how many requests of so many tokens have room at once; 0 where not even the weights have any.

    `draft` is a model of its own that drafts, with a cache of its own.
    """
    both = _both(served, draft)
    free_bytes = USABLE * memory_bytes * served.boxes - sum(map(weights_bytes, both))
    each_bytes = sum(cached_bytes(one, tokens) + one.shape.state_mb * 1e6 for one in both)
    if free_bytes <= 0:
        return 0.0
    return float(free_bytes // each_bytes) if each_bytes else math.inf


def say_room(served: Served, memory_bytes: float, tokens: int, draft: Served | None = None) -> str:
    """Returns what there is to say of it; nothing where one request of so many tokens has room."""
    if room_for(served, memory_bytes, tokens, draft) >= 1:
        return ""
    both = _both(served, draft)
    weights = sum(map(weights_bytes, both))
    beside = f" with the cache of {tokens:,} tokens" if weights < USABLE * memory_bytes * served.boxes else ""
    needed = weights + (sum(cached_bytes(one, tokens) for one in both) if beside else 0.0)
    usable = USABLE * memory_bytes * served.boxes / GIGA
    it = "it" if draft is None else "with its draft it"
    return f"{it} has no room there: it takes {needed / GIGA:,.0f} GB{beside}, and an engine may have {usable:,.0f}"


def _both(served: Served, draft: Served | None) -> list[Served]:
    return [served] if draft is None else [served, draft]
