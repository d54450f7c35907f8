"""Everything that is predicted of one model on one machine, and where the time of a step goes. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from stoker.plan.speed.capacity import Habits, simulate
from stoker.plan.speed.cost import cost_s
from stoker.plan.speed.curve import drafting_curve
from stoker.plan.speed.limit import StepBytes, limit_tok_s, step_bytes
from stoker.plan.speed.memory import MemoryOf
from stoker.plan.speed.prediction import Fit, predict, traits
from stoker.plan.speed.rows import Asked
from stoker.plan.speed.schedule import BATCH_TOKENS, Burst
from stoker.plan.speed.speculation import Drafting
from stoker.plan.speed.work import Served, Step, Terms, step_terms
from stoker.records import (
    CapacityView,
    DraftingView,
    MeasuredView,
    ReadPart,
    Record,
    SpeedView,
    SpentPart,
)

READS = (("experts", "routed"), ("feed-forward layers", "mlp"), ("attention and the like", "mixer"),
         ("output matrix", "head"), ("cache", "cache"), ("state of linear layers", "state"))  # fmt: skip
SPENT = (("reading at the nominal rate", ()), ("reading slower than that", ("gb",)), ("computing", ("tf",)),
         ("beginning layers and steps", ("step.layer", "step.request", "step.eager")),
         ("the link between machines", ("step.link",)))  # fmt: skip
UNEXPLAINED = "what the prediction does not explain"


class Question(Record, frozen=True):
    """What somebody wants to know: so many requests at a depth, a measured rate, how drafts are accepted, and for whom.

    `rates` are conditional accept rates by position, by the content that they are of; `draft` is the model that drafts,
    where that is one of its own.
    """

    served: Served
    requests: int = 1
    prompt: int = 1000
    measured_tok_s: float | None = None
    method: str | None = None
    rates: tuple[tuple[str, tuple[float, ...]], ...] = ()
    habits: tuple[Habits, ...] = ()
    drafted: Drafting | None = None
    draft: Served | None = None


def predict_speed(question: Question, name: str, quantisation: str, machine: str, memory: MemoryOf, fit: Fit) -> SpeedView:
    """Returns what is predicted; on a machine that the fit is not of, only what its memory allows."""
    served = question.served
    read = step_bytes(served, question.requests, 1.0, question.prompt)
    limit = question.requests * memory.bandwidth * served.boxes / read.total
    view = SpeedView(
        model=name, machine=machine, engine=served.engine, quantisation=quantisation, requests=question.requests,
        prompt_tokens=question.prompt, bandwidth_bytes_per_s=memory.bandwidth, reads=_reads(read), limit_tok_s=limit,
        expected=None, prefill_tok_s=None, is_guess=served.layout.is_guess or served.shape.is_guess,
        bandwidth_source=memory.source,
    )  # fmt: skip
    if not memory.fitted:
        why = f"the fit is of a GB10, and this is {machine}: only the limit is known"
        return msgspec.structs.replace(view, why=why, measured=_measured(question, limit, ()))
    expected = predict(Asked(served, _alone(question), None), fit)
    spent = spent_parts(step_terms(served, _step(question)), fit, read, memory)
    return msgspec.structs.replace(
        view, expected=expected, prefill_tok_s=prefill_tok_s(served, question.prompt, fit), spent=spent,
        measured=_measured(question, limit, spent, expected.decode_tok_s), drafting=_drafting(question, fit),
        capacity=_capacity(question, fit),
    )  # fmt: skip


def _step(question: Question) -> Step:
    return Step(question.requests, depth=question.prompt)


def _alone(question: Question) -> Burst:
    return Burst(question.requests, prompt=question.prompt, answer=1, reads_prompts=False)


def _reads(read: StepBytes) -> tuple[ReadPart, ...]:
    return tuple(ReadPart(name, float(getattr(read, field))) for name, field in READS if getattr(read, field))


def spent_parts(terms: Terms, fit: Fit, read: StepBytes, memory: MemoryOf) -> tuple[SpentPart, ...]:
    """Returns where the time of a step is expected to go, as shares of it."""
    whole = cost_s(terms, fit.factors)
    nominal = read.total / memory.bandwidth
    found = [SpentPart(SPENT[0][0], nominal / whole)]
    for name, starts in SPENT[1:]:
        seconds = cost_s({factors: amount for factors, amount in terms.items() if factors[0] in starts}, fit.factors)
        seconds -= nominal if starts == ("gb",) else 0.0
        if seconds:
            found.append(SpentPart(name, seconds / whole))
    return tuple(found)


def _measured(
    question: Question, limit: float, spent: Sequence[SpentPart], expected: float | None = None
) -> MeasuredView | None:
    """Returns the measured rate by the limit; the rest by what is expected to take it, and what nothing expected takes."""
    measured = question.measured_tok_s
    if measured is None:
        return None
    if expected is None:
        return MeasuredView(measured, measured / limit, ())
    scale = measured / expected
    rest = [SpentPart(part.name, part.share * scale) for part in spent[1:]]
    return MeasuredView(measured, measured / limit, (*rest, SpentPart(UNEXPLAINED, 1 - scale)))


def prefill_tok_s(served: Served, prompt: int, fit: Fit) -> float:
    """Returns how fast a prompt is read that is alone."""
    piece = served.shape.piece or BATCH_TOKENS
    seconds = 0.0
    for depth in range(0, prompt, piece):
        seconds += cost_s(step_terms(served, Step(0, prompt=min(piece, prompt - depth), prompt_depth=depth)), fit.factors)
    return prompt / seconds


def _drafting(question: Question, fit: Fit) -> tuple[DraftingView, ...]:
    method = question.method
    if method is None:
        return ()
    found: list[DraftingView] = []
    for content, rates in question.rates:
        curve = drafting_curve(
            question.served, method, rates, fit, question.requests, question.prompt, question.measured_tok_s, question.draft
        )
        for point in curve[1:]:
            drafting = Drafting(method, point.draft_tokens, point.accept_length)
            asked = Asked(question.served, _alone(question), drafting)
            expected = fit.between(point.decode_tok_s, traits(asked), limit_tok_s(asked))
            found.append(DraftingView(method, content, point.draft_tokens, point.accept_length, expected))
    return tuple(found)


def _capacity(question: Question, fit: Fit) -> tuple[CapacityView, ...]:
    return tuple(simulate(question.served, habits, fit, question.drafted) for habits in question.habits)
