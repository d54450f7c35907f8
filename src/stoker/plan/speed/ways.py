"""How fast one model runs over several boxes: sharing each layer, a part of the layers each, or a copy each. Pure.

Sharing each layer (tensor parallel) halves what a box reads and adds two all-reduces a layer. A part of the layers each
(pipeline) reads as much for one request as one box does, one part after the other; several requests keep all boxes busy.
So with weights that fit one box, a pipeline can give nothing that copies don't, and pays the link.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from stoker.plan.speed.cost import cost_s
from stoker.plan.speed.limit import limit_tok_s
from stoker.plan.speed.links import LinkCost, LinkCosts, handed_on_s, hidden_of, reduced_s
from stoker.plan.speed.prediction import Fit, traits
from stoker.plan.speed.rows import Asked
from stoker.plan.speed.schedule import Burst, steps_of
from stoker.plan.speed.speculation import Drafting, draft_terms
from stoker.plan.speed.work import Served, Step, added, step_terms
from stoker.records import Prediction, Record
from stoker.records.speed import SpeedAt

USUAL_ANSWER = 256
LINK = "step.link"  # the fit's own figure of a layer's exchange, in whose place the link's costs stand here


class Way(Record, frozen=True):
    """Copies of a model, each of which shares its layers by `tensor` and hands on by `pipeline`."""

    copies: int = 1
    tensor: int = 1
    pipeline: int = 1

    @property
    def boxes(self) -> int:
        """How many boxes it takes."""
        return self.copies * self.tensor * self.pipeline


class Load(Record, frozen=True):
    """What is served to whom: the model on one box, its width, and a burst of requests."""

    served: Served
    hidden: int
    burst: Burst
    drafting: Drafting | None = None


def load_of(served: Served, hidden: int | None, prompt: int, drafting: Drafting | None) -> Load:
    """Returns the load of requests that came with a prompt and are answered; the time for reading it is not counted."""
    burst = Burst(1, prompt=prompt, answer=USUAL_ANSWER, reads_prompts=False)
    if drafting is not None:
        verified = drafting.draft_tokens + 1.0
        burst = msgspec.structs.replace(burst, gained=drafting.accept_length, verified=verified)
    return Load(served, hidden or hidden_of(served.shape), burst, drafting)


def speeds_of(load: Load, way: Way, costs: LinkCosts, fit: Fit, counts: Sequence[int]) -> tuple[SpeedAt, ...]:
    """Returns what so many requests get; the interval holds what is not known of the link, and the fit's own misses."""
    return tuple(_speed_at(load, way, costs, fit, count) for count in counts)


def _speed_at(load: Load, way: Way, costs: LinkCosts, fit: Fit, count: int) -> SpeedAt:
    load = msgspec.structs.replace(load, burst=msgspec.structs.replace(load.burst, requests=count))
    # Of the link each kind knows its own bounds, so that the fit's for several boxes would count them twice.
    alone = Asked(load.served, load.burst, load.drafting)
    found = traits(alone)
    limit = limit_tok_s(alone) * min(way.boxes, way.tensor * count)
    slow, usual, fast = (total_tok_s(load, way, cost, fit) for cost in (costs.worst, costs.usual, costs.best))
    low, high = fit.between(slow, found, limit).low_tok_s, fit.between(fast, found, limit).high_tok_s
    total = Prediction(usual, low, high, limit)
    each = Prediction(usual / count, low / count, high / count, limit / count)
    return SpeedAt(count, each, total)


def total_tok_s(load: Load, way: Way, cost: LinkCost, fit: Fit) -> float:
    """Returns the rate of all requests together over a link of that cost."""
    requests = load.burst.requests
    groups = min(requests, way.copies * way.pipeline)  # what runs at once without sharing a step
    burst = msgspec.structs.replace(load.burst, requests=-(-requests // groups))
    served = msgspec.structs.replace(load.served, boxes=way.tensor)
    seconds = tokens = 0.0
    for step, repeats, given in steps_of(served, burst):
        tokens += given
        seconds += repeats * _step_s(load, served, step, way, cost, fit)
    return groups * tokens / seconds * requests / (groups * burst.requests)


def _step_s(load: Load, served: Served, step: Step, way: Way, cost: LinkCost, fit: Fit) -> float:
    terms = step_terms(served, step)
    if load.drafting is not None:
        terms = added(terms, draft_terms(served, load.drafting, step))
    own_s = cost_s({names: amount for names, amount in terms.items() if names[0] != LINK}, fit.factors)
    tokens = step.requests * step.tokens + step.prompt
    shared_s = reduced_s(cost, way.tensor, tokens, load.hidden, served.shape.layers)
    shared_s += _drafts_reduced_s(load, step, way, cost)
    return own_s + shared_s + handed_on_s(cost, way.pipeline, tokens, load.hidden)


def _drafts_reduced_s(load: Load, step: Step, way: Way, cost: LinkCost) -> float:
    """Returns what the all-reduces of drafting take: of a layer for each token, or of all layers of a model of its own."""
    drafting = load.drafting
    if drafting is None or drafting.sort == "ngram":
        return 0.0
    own = None if drafting.model is None else drafting.model.shape
    layers, hidden = (1, load.hidden) if own is None else (own.layers, hidden_of(own))
    passes = drafting.draft_tokens if step.requests else 0
    drafted_s = reduced_s(cost, way.tensor, step.requests, hidden, passes * layers)
    return drafted_s + (reduced_s(cost, way.tensor, step.prompt, hidden, layers) if own and step.prompt else 0.0)


def gain_of(load: Load, way: Way, costs: LinkCosts, fit: Fit, count: int) -> tuple[float, float]:
    """Returns how many times as fast as copies on the same boxes it is, at the link's worst and at its best."""
    load = msgspec.structs.replace(load, burst=msgspec.structs.replace(load.burst, requests=count))
    copies = total_tok_s(load, Way(copies=way.boxes), costs.usual, fit)
    return total_tok_s(load, way, costs.worst, fit) / copies, total_tok_s(load, way, costs.best, fit) / copies
