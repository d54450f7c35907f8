"""What one step of an engine has to do: bytes to read and operations, each with the factors that turn it into seconds. Pure.

A step is one forward pass over some requests: one token each, or several to verify drafts, and perhaps a piece of a prompt.
Its time is the sum of its terms, an amount times the product of its factors; `cost.py` knows the factors' values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from stoker.plan.speed.layout import Layout
from stoker.plan.speed.shape import PARTS, Part, Shape
from stoker.records import Record

Factors = tuple[str, ...]
Terms = dict[Factors, float]
GIGA, TERA = 1e9, 1e12
STATE_VALUE_BYTES, STATE_OPERATIONS = 4, 8  # of linear layers: stored as 32-bit numbers, each of them updated and read
# Tokens that are computed together want fewer different experts than as many strangers would.
TOGETHER = 0.9


class Served(Record, frozen=True):
    """A model as it is served: its shape, its stored weights, and what computes it; `boxes` share each layer's work."""

    shape: Shape
    layout: Layout
    engine: str
    boxes: int = 1
    is_eager: bool = False


class Step(Record, frozen=True):
    """One step: so many requests with `tokens` each at a depth, and tokens of a prompt at a depth of their own."""

    requests: float
    tokens: float = 1.0
    depth: float = 0.0
    prompt: float = 0.0
    prompt_depth: float = 0.0


def added(terms: Terms, more: Terms) -> Terms:
    """Returns the terms of two pieces of work, one after the other."""
    return {factors: terms.get(factors, 0.0) + more.get(factors, 0.0) for factors in terms | more}


def step_terms(served: Served, step: Step) -> Terms:
    """Returns the terms of a step."""
    terms: Terms = defaultdict(float)
    for factors, amount in _terms(served, step):
        terms[factors] += amount / served.boxes if factors[0] in ("gb", "tf") else amount
    return dict(terms)


def _terms(served: Served, step: Step) -> Iterator[tuple[Factors, float]]:
    shape, engine = served.shape, served.engine
    decoded = step.requests * step.tokens
    yield from _weights(served, strangers(step))
    yield from _operations(served, decoded + step.prompt, step.requests * step.tokens + (1 if step.prompt else 0))
    if step.requests:
        yield ("gb", "gb.kv"), step.requests * cached_bytes(served, step.depth) / GIGA
        yield ("gb", "gb.state"), step.requests * 2 * shape.state_mb / 1e3
    if step.prompt:
        looked_at = 4 * step.prompt * (step.prompt_depth + step.prompt / 2) / TERA
        yield ("tf", "tf.attention"), looked_at * shape.width
        yield ("tf", "tf.attention", "tf.window"), looked_at * shape.window_width
        yield ("tf", "tf.state"), step.prompt * shape.state_mb * 1e6 / STATE_VALUE_BYTES * STATE_OPERATIONS / TERA
    yield ("step.layer", f"step.layer.{engine}"), float(shape.layers)
    yield ("step.request",), step.requests
    if served.is_eager:
        yield ("step.eager",), float(shape.layers)
    if served.boxes > 1:
        yield ("step.link",), float(shape.layers)


def strangers(step: Step) -> float:
    """Returns how many tokens that have nothing to do with each other would want as many experts as this step."""
    return float((step.requests * step.tokens) ** TOGETHER + step.prompt**TOGETHER)


def read_bytes(served: Served, part: Part, tokens: float) -> float:
    """Returns the bytes of a part that a step reads for so many tokens that are strangers to each other."""
    share = served.shape.routed_share(max(1.0, tokens)) if part == "routed" else 1.0
    return served.shape.parameters(part) * served.layout.bytes_of(part) * share


def cached_bytes(served: Served, depth: float) -> float:
    """Returns what a step reads of one request's cache at this depth."""
    shape = served.shape
    return (shape.kv * depth + shape.window_kv * min(depth, shape.window)) * served.layout.kv


def _weights(served: Served, tokens: float) -> Iterator[tuple[Factors, float]]:
    family, engine = served.layout.family, served.engine
    for part in PARTS:
        size = read_bytes(served, part, tokens) / GIGA
        if size and part == "routed":
            yield ("gb", f"gb.{engine}", "gb.routed", f"gb.routed.{engine}", f"gb.routed.{family}"), size
        elif size:
            sort = "16-bit" if served.layout.bytes_of(part) >= 2 else family
            yield ("gb", f"gb.{engine}", f"gb.dense.{sort}"), size


def _operations(served: Served, tokens: float, sampled: float) -> Iterator[tuple[Factors, float]]:
    shape, engine = served.shape, served.engine
    family = f"{served.layout.family}.packed" if served.layout.weight_only else served.layout.family
    dense = shape.parameters("mlp") + shape.parameters("mixer")
    routed = shape.parameters("routed") * shape.routed_share(1)
    yield ("tf", f"tf.{family}", f"tf.{engine}"), 2 * (tokens * dense + sampled * shape.parameters("head")) / TERA
    if routed:
        yield ("tf", f"tf.{family}", f"tf.{engine}", "tf.routed"), 2 * tokens * routed / TERA
