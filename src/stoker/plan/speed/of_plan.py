"""What is predicted of a plan, for `stoker plan` to say beside its memory. Pure."""

from __future__ import annotations

import re

import msgspec

from stoker.plan.speed.from_model import served_of
from stoker.plan.speed.memory import memory_of
from stoker.plan.speed.outlook import Question, predict_speed
from stoker.plan.speed.prediction import Fit, load_fit
from stoker.plan.speed.speculation import Drafting, expected_length, sort_of, usual_rates
from stoker.plan.speed.work import Served
from stoker.records import Machine, Model, Plan, SpeedView

COUNT = re.compile(r"(?:num_speculative_tokens\W+|--speculative-num-steps )(\d+)")
CONTENTS = ("code", "prose")


def predict_plan(plan: Plan, model: Model, machine: Machine, draft: Model | None = None) -> SpeedView | None:
    """Returns the prediction for one request, with drafts where the plan has them; None where nothing is known of either."""
    memory, served = memory_of(machine), served_of(model, plan.engine)
    if memory is None or served is None:
        return None
    said = " ".join(f"{one.name} {one.value}" for one in plan.settings if "specul" in one.name)
    sort = sort_of(said)
    rates: tuple[tuple[str, tuple[float, ...]], ...] = ()
    fit = load_fit()
    if sort is not None:
        count = COUNT.search(said)
        tokens = int(count[1]) if count else None
        rates = tuple((content, tuple(usual_rates(sort, tokens, content, fit.first_rates))) for content in CONTENTS)
    question = Question(served=served, method=sort, rates=rates, draft=draft_of(sort, draft, plan.engine))
    view = predict_speed(question, model.name, model.quantisation or "", machine.gpus[0].name, memory, fit)
    drafted = len(rates[0][1]) if rates else 0
    name = draft.name if draft is not None and question.draft is not None else ""
    shown = tuple(one for one in view.drafting if one.draft_tokens == drafted)
    return msgspec.structs.replace(view, drafting=shown, draft=name)


def draft_of(sort: str | None, draft: Model | None, engine: str) -> Served | None:
    """Returns the model that drafts as an engine serves it; None for heads, which are known by what is usual of them."""
    return served_of(draft, engine) if sort == "draft" and draft is not None else None


def drafting_of(plan: Plan, draft: Model | None, fit: Fit) -> Drafting | None:
    """Returns how a plan drafts, with the accept length that is usual over all contents; None where it does not."""
    said = " ".join(f"{one.name} {one.value}" for one in plan.settings if "specul" in one.name)
    sort, count = sort_of(said), COUNT.search(said)
    if sort is None:
        return None
    rates = usual_rates(sort, int(count[1]) if count else None, None, fit.first_rates)
    return Drafting(sort, len(rates), expected_length(rates), model=draft_of(sort, draft, plan.engine))
