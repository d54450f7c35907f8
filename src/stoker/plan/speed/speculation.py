"""What drafting tokens gives and costs: the tokens of a verify step, and the work of the draft. Pure.

`accept_rate` is accepted / proposed draft tokens; `accept_length` the tokens that a verify step gives, the model's own one
among them. A position's conditional rate is how often its draft is right if all before it were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import msgspec

from stoker.plan.speed.layout import SIXTEEN
from stoker.plan.speed.shape import MILLION
from stoker.plan.speed.work import GIGA, Served, Step, Terms, added, read_bytes, step_terms
from stoker.records import Record

# Each further position is guessed from a guess: how much rarer it is right. One published model loses 1 to 4 % a position
# up to its fourth and nearly all after that; the lengths of another's sweep mean about 10 %.
FALL = 0.96
# What methods are called, and what sort they are: the first word that is found counts.
SORTS = {"ngram": "ngram", "lookup": "ngram", "block": "block", "flash": "block", "dspark": "block", "mtp": "mtp",
         "nextn": "mtp", "eagle": "eagle", "medusa": "eagle", "draft": "draft", "standalone": "draft"}  # fmt: skip
# Of every draft, when nothing is known of it: how often its first token is right. `calibrate.py` fits them.
USUAL_FIRST_RATE = {"mtp": 0.8, "eagle": 0.75, "block": 0.85, "draft": 0.75, "ngram": 0.35}
USUAL_DRAFT_TOKENS = {"mtp": 3, "eagle": 3, "block": 15, "draft": 4, "ngram": 8}
# Blocks are drafted in one pass of a few layers; the others one token after another, by a layer of their own and the head.
BLOCK_LAYERS = 5
MOST_FIRST_RATE = 0.98
CONTENT = {"code": 1.06, "prose": 0.82}


class Drafting(Record, frozen=True):
    """How tokens are drafted: the sort of method, tokens a step, and the tokens that a verify step gives.

    `model` is what drafts, where that is a model of its own and known.
    """

    sort: str
    draft_tokens: int
    accept_length: float
    is_measured: bool = False
    model: Served | None = None


def sort_of(method: str) -> str | None:
    """Returns the sort of a method by what people call it; None where there is no drafting."""
    said = method.lower()
    return next((sort for word, sort in SORTS.items() if word in said), None)


def expected_length(rates: Sequence[float]) -> float:
    """Returns the tokens that a verify step gives, from each position's conditional rate."""
    return 1.0 + sum(prod(rates[: count + 1]) for count in range(len(rates)))


def falling_rates(first_rate: float, draft_tokens: int) -> list[float]:
    """Returns conditional rates that begin so and fall as usual."""
    return [first_rate * FALL**position for position in range(draft_tokens)]


def first_rate_for(accept_length: float, draft_tokens: int) -> float:
    """Returns the first position's rate with which a verify step gives so many tokens."""
    low, high = 0.0, 1.0 / FALL ** (draft_tokens - 1)
    for _ in range(50):
        middle = (low + high) / 2
        rates = [min(1.0, rate) for rate in falling_rates(middle, draft_tokens)]
        low, high = (middle, high) if expected_length(rates) < accept_length else (low, middle)
    return low


def usual_rates(sort: str, draft_tokens: int | None, content: str | None, first_rates: Mapping[str, float]) -> list[float]:
    """Returns the conditional rates that drafts of this sort usually have for such a content."""
    first = min(MOST_FIRST_RATE, first_rates.get(sort, USUAL_FIRST_RATE[sort]) * CONTENT.get(content or "", 1.0))
    return falling_rates(first, draft_tokens or USUAL_DRAFT_TOKENS[sort])


def draft_terms(served: Served, drafting: Drafting, step: Step) -> Terms:
    """Returns the terms of drafting before a step of verifying; a model that drafts reads the prompts of it too."""
    requests, passes = step.requests, float(drafting.draft_tokens)
    if drafting.model is not None:
        return _model_terms(msgspec.structs.replace(drafting.model, boxes=served.boxes), passes, step)
    if not requests:
        return {}
    sampled: Terms = {("step.drafted",): requests * passes}
    if drafting.sort == "ngram":
        return {("step.draft.ngram",): 1.0, **sampled}
    shape = served.shape
    layers = 1.0
    if drafting.sort == "block":
        passes, layers = 1.0, BLOCK_LAYERS
    layer = (
        read_bytes(served, "mlp", 1) + read_bytes(served, "mixer", 1) + read_bytes(served, "routed", requests)
    ) / shape.layers
    one_pass = layers * layer + read_bytes(served, "head", 1)
    if drafting.sort == "mtp" and shape.draft is not None:
        one_pass = shape.draft * MILLION * SIXTEEN
    size = passes * one_pass / GIGA / served.boxes
    return {
        ("gb", f"gb.{served.engine}", f"gb.draft.{drafting.sort}"): size,
        **sampled,
        ("step.draft", f"step.draft.{drafting.sort}"): passes,
    }


def _model_terms(model: Served, passes: float, step: Step) -> Terms:
    """No published row tells of one: it does the steps of a model of its size, one for each token, and reads the prompts."""
    found: Terms = {("step.drafted",): step.requests * passes}
    if step.requests:
        once = step_terms(model, Step(step.requests, depth=step.depth))
        found |= {factors: passes * amount for factors, amount in once.items()}
    if step.prompt:
        found = added(found, step_terms(model, Step(0, prompt=step.prompt, prompt_depth=step.prompt_depth)))
    return found
